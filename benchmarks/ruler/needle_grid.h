// A needle in a haystack over a grid of depths and lengths (after Kamradt, 2023): one sentence
// with a number, hidden at a given depth of a text of a given length. One task per depth.
#pragma once

#include "benchmarks/benchmark.h"

namespace kvlab {

// Settings: lengths, depths (per cent), samples, seed, template, chat_template, essays, wordlists,
// punkt, as RULER's. Wording, answer prefix and metric are those of RULER's niah_single_2.
class NeedleGridBenchmark final : public Benchmark {
 public:
  std::string_view name() const override { return "needle_grid"; }
  std::string_view summary() const override {
    return "one needle at every depth of texts of every length, for a heat map";
  }
  std::vector<std::string> tasks() const override;
  absl::StatusOr<Json> resolve_protocol(const Json& params) const override;
  absl::StatusOr<std::vector<Sample>> load_samples(const Json& params, const Tokenizer& tokenizer,
                                                   const PromptFormat& format) const override;
  absl::StatusOr<Score> score(const Sample& sample, std::string_view reply) const override;
};

}  // namespace kvlab
