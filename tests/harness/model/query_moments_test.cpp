#include "harness/model/query_moments.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace kvlab {
namespace {

TEST(QueryMoments, ChunksGiveWhatAllRowsTogetherGive) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  const at::Tensor queries = at::randn({3, 201, 8}, generator) * 2 + 5;
  const at::Tensor wide = queries.to(at::kDouble);
  const at::Tensor mean = wide.mean(1);
  const at::Tensor centred = wide - mean.unsqueeze(1);
  const at::Tensor covariance = at::matmul(centred.transpose(1, 2), centred) / 201.0;
  for (const int64_t chunk : {1, 7, 64, 500}) {
    QueryMoments moments;
    for (int64_t first = 0; first < 201; first += chunk) {
      moments.add(queries.narrow(1, first, std::min<int64_t>(chunk, 201 - first)));
    }
    EXPECT_LT((moments.mean() - mean).abs().max().item<double>(), 1e-4) << chunk;
    EXPECT_LT((moments.covariance() - covariance).abs().max().item<double>(), 1e-3) << chunk;
  }
}

TEST(QueryMoments, NoQueriesLeaveNothing) {
  QueryMoments moments;
  moments.add(at::zeros({3, 0, 8}));
  EXPECT_FALSE(moments.mean().defined());
  EXPECT_FALSE(moments.covariance().defined());
}

}  // namespace
}  // namespace kvlab
