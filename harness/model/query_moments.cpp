#include "harness/model/query_moments.h"

namespace kvlab {

void QueryMoments::add(const at::Tensor& queries) {
  const int64_t rows = queries.size(1);
  if (rows == 0) {
    return;
  }
  const at::Tensor q = queries.to(at::kFloat);
  const at::Tensor mean = q.mean(1);
  const at::Tensor centred = q - mean.unsqueeze(1);
  const at::Tensor scatter = at::matmul(centred.transpose(1, 2), centred);
  if (count_ == 0) {
    count_ = rows;
    mean_ = mean;
    scatter_ = scatter;
    return;
  }
  // Chan, Golub and LeVeque's update of two sets' moments.
  const auto a = static_cast<double>(count_);
  const auto b = static_cast<double>(rows);
  const at::Tensor difference = mean - mean_;
  const at::Tensor outer = difference.unsqueeze(2) * difference.unsqueeze(1);
  scatter_ = scatter_ + scatter + outer * (a * b / (a + b));
  mean_ = mean_ + difference * (b / (a + b));
  count_ += rows;
}

at::Tensor QueryMoments::covariance() const {
  return scatter_.defined() ? scatter_ / static_cast<double>(count_) : at::Tensor();
}

}  // namespace kvlab
