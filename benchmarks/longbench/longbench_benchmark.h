// LongBench v1 and LongBench-E as a benchmark of the harness.
#pragma once

#include "benchmarks/benchmark.h"

namespace kvlab {

// Parameters: "folder" (a folder of LongBench's *.jsonl files, or its data.zip), "tasks" (names, or
// the groups all, english, chinese), "samples" (the first so many records of each task; 0 or
// absent: all), "e" (LongBench-E's files), "protocol", and any field of the protocol.
class LongBenchBenchmark final : public Benchmark {
 public:
  std::string_view name() const override { return "longbench"; }
  std::string_view summary() const override;
  std::vector<std::string> tasks() const override;
  absl::StatusOr<Json> resolve_protocol(const Json& params) const override;
  absl::StatusOr<std::vector<Sample>> load_samples(const Json& params, const Tokenizer& tokenizer,
                                                   const PromptFormat& format) const override;
  absl::StatusOr<Score> score(const Sample& sample, std::string_view reply) const override;
};

}  // namespace kvlab
