#include "methods/lookahead_kv/training/optimizer.h"

#include <torch/optim/adam.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "harness/base/status.h"
#include "harness/model/safetensors.h"
#include "harness/model/stored_tensors.h"

namespace kvlab {
namespace {

constexpr std::string_view kStepKey = "optimizer_steps";

}  // namespace

struct AdapterOptimizer::Impl {
  torch::optim::Adam adam;
};

double learning_rate_at(const OptimizerOptions& options, int64_t step) {
  if (step < options.warmup_steps) {
    return options.learning_rate * static_cast<double>(step + 1) /
           static_cast<double>(options.warmup_steps);
  }
  const auto span =
      static_cast<double>(std::max<int64_t>(1, options.total_steps - options.warmup_steps));
  const double done = std::min(1.0, static_cast<double>(step - options.warmup_steps) / span);
  return options.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

AdapterOptimizer::AdapterOptimizer(NamedTensors parameters, const OptimizerOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : parameters_) {
    tensors.push_back(tensor);
  }
  impl_ = std::make_unique<Impl>(
      Impl{torch::optim::Adam(tensors, torch::optim::AdamOptions(options.learning_rate))});
}

AdapterOptimizer::~AdapterOptimizer() = default;

AdapterOptimizer::StepInfo AdapterOptimizer::step() {
  StepInfo info;
  double squares = 0;
  for (const auto& [name, tensor] : parameters_) {
    if (tensor.grad().defined()) {
      squares += tensor.grad().square().sum().item<double>();
    }
  }
  info.gradient_norm = std::sqrt(squares);
  if (info.gradient_norm > options_.clip) {
    const double scale = options_.clip / (info.gradient_norm + 1e-6);
    for (const auto& [name, tensor] : parameters_) {
      if (tensor.grad().defined()) {
        tensor.mutable_grad().mul_(scale);
      }
    }
  }
  info.learning_rate = learning_rate_at(options_, steps_done_);
  for (auto& group : impl_->adam.param_groups()) {
    group.options().set_lr(info.learning_rate);
  }
  impl_->adam.step();
  impl_->adam.zero_grad();
  ++steps_done_;
  return info;
}

absl::Status AdapterOptimizer::save(
    const std::filesystem::path& path,
    std::map<std::string, std::string, std::less<>> metadata) const {
  std::vector<at::Tensor> keep_alive;
  std::vector<SafetensorsTensor> stored;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    keep_alive.push_back(tensor.detach().to(at::kFloat).contiguous());
    stored.push_back(stored_view(name, keep_alive.back()));
  };
  const auto& states = impl_->adam.state();
  for (const auto& [name, tensor] : parameters_) {
    add("parameter." + name, tensor);
    const auto it = states.find(tensor.unsafeGetTensorImpl());
    if (it != states.end()) {
      const auto& state = static_cast<const torch::optim::AdamParamState&>(*it->second);
      add("first_moment." + name, state.exp_avg());
      add("second_moment." + name, state.exp_avg_sq());
    }
  }
  metadata[std::string(kStepKey)] = fmt::format("{}", steps_done_);
  return write_safetensors(path, stored, metadata);
}

absl::StatusOr<std::map<std::string, std::string, std::less<>>> AdapterOptimizer::restore(
    const std::filesystem::path& path) {
  KVLAB_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::open(path));
  const SafetensorsHeader& header = file->header();
  const auto steps = header.metadata.find(kStepKey);
  if (steps == header.metadata.end() ||
      std::from_chars(steps->second.data(), steps->second.data() + steps->second.size(),
                      steps_done_)
              .ec != std::errc()) {
    return data_loss("{}: not a checkpoint of a training run", path.string());
  }
  const auto read = [&](const std::string& name, const at::Tensor& like) {
    const auto it = header.tensors.find(name);
    if (it == header.tensors.end() || it->second.shape != like.sizes().vec() ||
        it->second.type != StoredType::kFloat32) {
      return absl::StatusOr<at::Tensor>(
          data_loss("{}: \"{}\" is missing or has another shape: the recipe has changed since; use "
                    "another output folder",
                    path.string(), name));
    }
    const auto bytes = file->bytes(it->second);
    at::Tensor tensor = at::empty(like.sizes(), at::TensorOptions().dtype(at::kFloat));
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(tensor.data_ptr()));
    return absl::StatusOr<at::Tensor>(tensor);
  };
  const c10::NoGradGuard no_grad;
  for (auto& [name, tensor] : parameters_) {
    KVLAB_ASSIGN_OR_RETURN(const at::Tensor value, read("parameter." + name, tensor));
    tensor.copy_(value);
    if (steps_done_ == 0) {
      continue;
    }
    auto state = std::make_unique<torch::optim::AdamParamState>();
    KVLAB_ASSIGN_OR_RETURN(const at::Tensor first, read("first_moment." + name, tensor));
    KVLAB_ASSIGN_OR_RETURN(const at::Tensor second, read("second_moment." + name, tensor));
    state->exp_avg(first);
    state->exp_avg_sq(second);
    state->step(steps_done_);
    impl_->adam.state()[tensor.unsafeGetTensorImpl()] = std::move(state);
  }
  return header.metadata;
}

}  // namespace kvlab
