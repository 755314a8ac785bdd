#include "harness/model/rotary.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kvlab {
namespace {

// theta^(2i / head_dim); the unscaled frequencies are their reciprocals.
at::Tensor wavelengths_over_2_pi(const ModelConfig& config) {
  const at::Tensor exponents =
      at::arange(0, config.head_dim, 2, at::kLong).to(at::kFloat) / config.head_dim;
  return at::pow(config.rope_theta, exponents);
}

// Long wavelengths are stretched by `factor`, short ones kept, those between interpolated.
at::Tensor llama3_frequencies(const at::Tensor& base, const RopeScaling& scaling) {
  const auto old_length = static_cast<double>(scaling.original_max_position_embeddings);
  const double low_wavelength = old_length / scaling.low_freq_factor;
  const double high_wavelength = old_length / scaling.high_freq_factor;
  const at::Tensor wavelength = 2 * std::numbers::pi / base;
  const at::Tensor stretched = at::where(wavelength > low_wavelength, base / scaling.factor, base);
  const at::Tensor smooth = (old_length / wavelength - scaling.low_freq_factor) /
                            (scaling.high_freq_factor - scaling.low_freq_factor);
  const at::Tensor between = (1 - smooth) * stretched / scaling.factor + smooth * stretched;
  const at::Tensor is_between =
      at::logical_and(wavelength >= high_wavelength, wavelength <= low_wavelength);
  return at::where(is_between, between, stretched);
}

// Arxiv 2309.00071: dimensions that turn fewer than beta_slow times over the original length are
// interpolated, those that turn more than beta_fast times are kept, with a ramp between.
at::Tensor yarn_frequencies(const at::Tensor& periods, const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  const auto dimension_of = [&](double rotations) {
    const auto old_length = static_cast<double>(scaling.original_max_position_embeddings);
    return static_cast<double>(config.head_dim) *
           std::log(old_length / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(config.rope_theta));
  };
  const double low = std::max(std::floor(dimension_of(scaling.beta_fast)), 0.0);
  double high = std::min(std::ceil(dimension_of(scaling.beta_slow)),
                         static_cast<double>(config.head_dim - 1));
  if (low == high) {
    high += 0.001;
  }
  const at::Tensor ramp =
      at::clamp((at::arange(config.head_dim / 2, at::kFloat) - low) / (high - low), 0, 1);
  const at::Tensor keep = 1 - ramp;
  return at::reciprocal(scaling.factor * periods) * (1 - keep) + at::reciprocal(periods) * keep;
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(const ModelConfig& config, at::Device device) : device_(device) {
  const c10::NoGradGuard no_grad;
  const RopeScaling& scaling = config.rope_scaling;
  const at::Tensor periods = wavelengths_over_2_pi(config);
  inverse_frequencies_ = at::reciprocal(periods);
  if (scaling.type == "linear") {
    inverse_frequencies_ = inverse_frequencies_ / scaling.factor;
  } else if (scaling.type == "llama3") {
    inverse_frequencies_ = llama3_frequencies(inverse_frequencies_, scaling);
  } else if (scaling.type == "yarn") {
    inverse_frequencies_ = yarn_frequencies(periods, config);
    attention_factor_ = scaling.attention_factor;
    if (attention_factor_ == 0) {
      attention_factor_ = scaling.factor <= 1 ? 1.0 : 0.1 * std::log(scaling.factor) + 1.0;
    }
  }
}

RotaryEmbedding::Tables RotaryEmbedding::tables(int64_t first, int64_t count) {
  const c10::NoGradGuard no_grad;
  const int64_t needed = first + count;
  const int64_t have = grown_.cos.defined() ? grown_.cos.size(0) : 0;
  if (needed > have) {
    const int64_t size = std::max<int64_t>({needed, 2 * have, 1024});
    const at::Tensor positions = at::arange(size, at::kLong).to(at::kFloat);
    const at::Tensor angles = positions.unsqueeze(1) * inverse_frequencies_.unsqueeze(0);
    grown_.cos = (at::cos(angles) * attention_factor_).to(device_);
    grown_.sin = (at::sin(angles) * attention_factor_).to(device_);
  }
  return {grown_.cos.narrow(0, first, count), grown_.sin.narrow(0, first, count)};
}

}  // namespace kvlab
