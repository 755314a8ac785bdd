// Everything a sweep will do, checked before anything runs: which samples, in which order, with
// which arms, and what is skipped for what reason.
#pragma once

#include <absl/container/flat_hash_set.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/benchmark.h"
#include "harness/model/model_config.h"
#include "harness/sweep/arm.h"
#include "harness/sweep/sweep_config.h"
#include "harness/text/prompt_format.h"
#include "harness/text/tokenizer.h"
#include "results/record.h"

namespace kvlab {

struct PlannedArm {
  size_t arm = 0;           // index into SweepPlan::arms
  std::string key;          // the cell's key in the database
  std::string skip_reason;  // empty: it runs
};

struct PlannedSample {
  const Benchmark* benchmark = nullptr;
  size_t protocol = 0;  // index into ModelPlan::protocols
  Sample sample;
  int64_t prompt_tokens = 0;
  // Of the part that is compressed without the question; 0 where the question does not stand apart.
  int64_t context_tokens = 0;
  std::string split_fault;  // why the question cannot be kept apart; empty: it can
  PromptFacts facts;
  std::vector<int32_t> stop_ids;  // the model's and the benchmark's; never empty
  std::vector<PlannedArm> arms;
};

struct ModelPlan {
  std::filesystem::path dir;
  ModelConfig config;
  Setting model;
  std::shared_ptr<const Tokenizer> tokenizer;
  PromptFormat format;
  std::vector<Setting> protocols;
  std::vector<PlannedSample> samples;  // round robin over tasks, so that an early stop is balanced
};

struct SweepPlan {
  SweepConfig config;
  std::vector<Arm> arms;
  std::vector<ModelPlan> models;
};

struct PlanOptions {
  std::string filter;  // regular expression on "benchmark/task/length/method/budget"
  int64_t shard = 1;   // 1-based: samples shard, shard + num_shards, ...
  int64_t num_shards = 1;
};

// Loads tokenizers and samples, makes every policy and checks it against every model, and every
// prompt against the model's positions (template, new, draft and lookahead tokens counted) and its
// protocol (BOS count, no second template, an id that ends a reply).
absl::StatusOr<SweepPlan> make_plan(const SweepConfig& config, const PlanOptions& options);

// Work in the plan that is not in `stored` yet.
struct PlanSummary {
  int64_t samples = 0;       // with at least one arm to run
  int64_t stored_cells = 0;  // done before
  int64_t cells = 0;         // to run
  int64_t skipped_cells = 0;
  int64_t prefill_tokens = 0;
  int64_t max_prompt_tokens = 0;
  int64_t max_new_tokens = 0;    // over all cells to run, if none stops early
  int64_t selected_entries = 0;  // prompt entries that the cells to run keep, over layers and heads
  int64_t peak_cache_bytes = 0;  // of the largest sample: full prompt state and all its arms
};
PlanSummary summarize(const SweepPlan& plan, const absl::flat_hash_set<std::string>& stored);

}  // namespace kvlab
