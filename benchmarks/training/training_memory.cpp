// One training sample of a given length, and what it took: scripts/training_memory runs this for a
// table. Random weights of the model's shape, positions raised, so that any length runs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <exception>
#include <random>

#include "benchmarks/training/naive_training.h"
#include "harness/base/allocator.h"
#include "harness/base/status.h"
#include "harness/bench/machine_state.h"
#include "harness/bench/tensor_memory.h"
#include "harness/model/random_weights.h"
#include "harness/model/threads.h"
#include "harness/sweep/sweep_config.h"
#include "methods/lookahead_kv/training/trainer.h"

namespace kvlab {
namespace {

struct Flags {
  std::string model = "SmolLM2-135M-Instruct";
  std::string mode = "kvlab";
  int64_t tokens = 1024;
  int64_t reply = 64;
  int repeat = 2;
  int threads = 0;
};

TrainingSample make_sample(const ModelConfig& config, int64_t tokens, int64_t reply) {
  std::mt19937_64 random(1);
  const auto some = [&](int64_t count) {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < count; ++i) {
      ids.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(config.vocab_size)));
    }
    return ids;
  };
  TrainingSample sample;
  sample.prompt_ids = some(tokens);
  sample.reply_ids = some(reply);
  return sample;
}

absl::Status run(const Flags& flags) {
  KVLAB_ASSIGN_OR_RETURN(const auto dir, find_model_dir(flags.model));
  KVLAB_ASSIGN_OR_RETURN(ModelConfig config, ModelConfig::load(dir));
  config.max_positions = flags.tokens + flags.reply + 64;
  if (flags.threads > 0) {
    set_compute_threads(flags.threads);
  }
  const TrainingSample sample = make_sample(config, flags.tokens, flags.reply);
  FrozenModel frozen{config, random_weights(config, at::kFloat, at::kCPU, 1),
                     RotaryEmbedding(config)};
  const auto adapter =
      LookaheadAdapter::initialise(config, LookaheadShape::paper(), frozen.weights.embedding, 1);
  adapter->require_gradients();
  std::shared_ptr<CausalLm> base;
  if (flags.mode == "kvlab") {
    KVLAB_ASSIGN_OR_RETURN(base, CausalLm::random(config, {}, 1));
  }
  double loss = 0;
  double seconds = 0;
  const int64_t resident_before = resident_bytes();
  TensorMemory memory;
  for (int i = 0; i < flags.repeat; ++i) {
    for (auto& [name, tensor] : adapter->named_tensors()) {
      tensor.mutable_grad().reset();
    }
    const auto start = std::chrono::steady_clock::now();
    if (base != nullptr) {
      KVLAB_ASSIGN_OR_RETURN(const SampleLoss one,
                             sample_loss(*base, frozen, *adapter, sample, /*backward=*/true,
                                         /*weight=*/1, {}));
      loss = one.loss;
    } else {
      loss = naive_sample_loss(frozen, *adapter, sample, /*backward=*/true);
    }
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  const Json result = {{"mode", flags.mode},
                       {"tokens", flags.tokens},
                       {"reply", flags.reply},
                       {"malloc", allocator_name()},
                       {"loss", loss},
                       {"seconds", seconds},
                       {"peak_tensor_bytes", memory.peak()},
                       {"resident_before", resident_before},
                       {"peak_resident_bytes", peak_resident_bytes()}};
  fmt::print("{}\n", dump_json(result));
  return absl::OkStatus();
}

}  // namespace
}  // namespace kvlab

int main(int argc, char** argv) {
  kvlab::Flags flags;
  CLI::App app("One training sample: time and peak memory, as a line of JSON");
  app.add_option("--model", flags.model, "Model whose shape is used")->capture_default_str();
  app.add_option("--mode", flags.mode, "kvlab or naive")
      ->check(CLI::IsMember({"kvlab", "naive"}))
      ->capture_default_str();
  app.add_option("--tokens", flags.tokens, "Prompt tokens")->capture_default_str();
  app.add_option("--reply", flags.reply, "Reply tokens")->capture_default_str();
  app.add_option("--repeat", flags.repeat, "Samples; the last one is timed")->capture_default_str();
  app.add_option("--threads", flags.threads, "Threads (0: all cores)");
  CLI11_PARSE(app, argc, argv);
  try {
    if (const absl::Status status = kvlab::run(flags); !status.ok()) {
      fmt::print(stderr, "{}\n", kvlab::message_of(status));
      return 1;
    }
  } catch (const std::exception& error) {  // out of memory, usually
    const std::string text = error.what();
    fmt::print(stderr, "{}\n", text.substr(0, text.find('\n')));
    return 2;
  }
  return 0;
}
