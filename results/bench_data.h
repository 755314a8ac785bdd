// Measurements of `kvlab bench`, as written and as read.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/record.h"
#include "results/sqlite.h"

namespace kvlab {

// Processors that others keep busy, above which a timing is disturbed.
constexpr double kQuietProcessors = 0.2;

// One repetition of one method at one budget, prompt length and number of arms.
struct BenchMeasurement {
  std::string budget = "full";            // as in CellId
  std::optional<int64_t> budget_entries;  // none for "full"
  std::string form = "shared";            // "by_layers": evicted inside prefill; "shared": after it
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
  int64_t arms = 1;  // rows that decode together
  int64_t repetition = 0;

  CellStatus status = CellStatus::kOk;
  std::string reason;  // why it failed or was skipped

  // Seconds. By layers, rows behind the prompt are in prefill_s.
  double prefill_s = 0;
  double query_s = 0;  // learned rows over the finished prompt
  double draft_s = 0;  // a draft, with its first stage
  double score_s = 0;
  double choose_s = 0;
  double compact_s = 0;
  double first_token_s = 0;  // from token ids to the first new token, everything
  double decode_step_s = 0;  // of all arms, mean over the steps

  // Bytes of tensors beyond the weights.
  int64_t prefill_peak_bytes = 0;   // until the prompt is through
  int64_t peak_bytes = 0;           // until the first token
  int64_t steady_bytes = 0;         // while decoding
  int64_t cache_bytes = 0;          // keys and values of one arm's cache
  int64_t resident_peak_bytes = 0;  // of the process, weights and all
  int64_t weight_bytes = 0;

  // By arithmetic (harness/bench/cost_model.h).
  double prefill_flops = 0, prefill_bytes = 0;
  double eviction_flops = 0, eviction_bytes = 0;
  double decode_flops = 0, decode_bytes = 0;  // a step
  double predicted_prefill_s = 0;
  double predicted_eviction_s = 0;
  double predicted_decode_step_s = 0;
  double predicted_peak_bytes = 0;

  double others_busy = 0;  // processors that other processes used meanwhile
  Json state = Json::object();
};

struct BenchRecord {
  Setting model;
  Setting method;
  BenchMeasurement measurement;
};

struct StoredBench {
  int64_t run = 0;
  std::string model;  // label
  std::string dtype;
  std::string device;
  std::string method;  // label
  BenchMeasurement measurement;
};

struct BenchRun {
  int64_t id = 0;
  std::string started;
  std::string commit;
  Json machine;
};

struct BenchData {
  std::vector<BenchRun> runs;     // those with measurements, oldest first
  std::vector<StoredBench> rows;  // in the order of writing
};

// Empty where the database has none.
absl::StatusOr<BenchData> load_bench(const Database& db);

}  // namespace kvlab
