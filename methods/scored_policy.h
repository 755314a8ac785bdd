// Every method that gives each entry a score: a Scorer, and how scores become kept entries. The
// second half has the same parameters for all methods, so that any query source goes with any
// reduction, pooling, allocation and protected part.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "methods/allocation.h"
#include "methods/attention_mass/score_reduction.h"
#include "methods/eviction_policy.h"
#include "methods/registry.h"
#include "methods/scorer.h"

namespace kvlab {

enum class Allocation { kUniform, kPyramid, kAdaptive };

struct SelectionOptions {
  int64_t sinks = 0;        // first entries, always kept
  int64_t window = 0;       // last entries, always kept, inside the budget
  double recent_share = 0;  // or this share of the budget, where that is more (H2O)
  GroupReduction group_reduction = GroupReduction::kMean;
  bool one_head = false;  // one score for all heads of a layer (TOVA)
  PoolKind pooling = PoolKind::kNone;
  int64_t kernel = 1;
  bool pool_before_group = false;
  Allocation allocation = Allocation::kUniform;
  PyramidOptions pyramid;
  AdaptiveOptions adaptive;
};

// Defaults of the parameters that scored methods share; what a method leaves out of its table.
struct SelectionDefaults {
  int64_t sinks = 0;
  int64_t window = 0;
  std::string window_name = "window";
  std::string window_meaning = "last prompt entries, always kept, inside the budget";
  std::string group_reduction = "mean";
  std::string head_scope = "kv_head";
  std::string pooling = "none";
  int64_t kernel = 7;
  std::string allocation = "uniform";
};

// Scores that are per KV head to begin with (norms, positions) have no group to reduce; the
// parameter then matters only with head_scope = layer.
std::vector<MethodParameter> selection_parameters(const SelectionDefaults& defaults);

// Of resolved parameters; `window_name` as given to selection_parameters. Errors: an even kernel.
absl::StatusOr<SelectionOptions> read_selection_options(const Json& params,
                                                        const std::string& window_name = "window");

std::unique_ptr<EvictionPolicy> make_scored_policy(std::string name, Json resolved_params,
                                                   std::unique_ptr<Scorer> scorer,
                                                   const SelectionOptions& options);

// Entries per KV head of every layer under `options`; all equal unless the allocation is a pyramid.
std::vector<int64_t> layer_budgets(const SelectionOptions& options, int64_t num_layers,
                                   int64_t prompt_len, int64_t budget);

}  // namespace kvlab
