// RULER (Hsieh et al., "What's the Real Context Size of Your Long-Context Language Models?",
// 2024) as a benchmark of sweeps.
#pragma once

#include "benchmarks/benchmark.h"

namespace kvlab {

// Settings (docs/protocols.md): tasks, lengths, samples, seed, template, chat_template; sources
// essays, squad, hotpotqa, wordlists, punkt; or file or folder with prompts made elsewhere.
class RulerBenchmark final : public Benchmark {
 public:
  std::string_view name() const override { return "ruler"; }
  std::string_view summary() const override {
    return "RULER's thirteen synthetic tasks at any length, generated as NVIDIA's scripts do";
  }
  std::vector<std::string> tasks() const override;
  absl::StatusOr<Json> resolve_protocol(const Json& params) const override;
  absl::StatusOr<std::vector<Sample>> load_samples(const Json& params, const Tokenizer& tokenizer,
                                                   const PromptFormat& format) const override;
  absl::StatusOr<Score> score(const Sample& sample, std::string_view reply) const override;
};

}  // namespace kvlab
