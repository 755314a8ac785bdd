// What a method costs by arithmetic: floating-point operations and memory traffic of prefill,
// eviction and decoding from the model's shape, and the time a device needs for them. In the manner
// of Davies et al., which LookaheadKV's appendix B uses: an operation takes the longer of its
// arithmetic at `compute_efficiency` of the peak and its traffic at `memory_efficiency` of the
// bandwidth; operations follow one another; element-wise work is taken as fused into its
// neighbours. No torch.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"
#include "harness/model/model_config.h"

namespace kvlab {

struct Device {
  std::string name;
  double flops_per_s = 0;  // dense matrix products in the model's dtype
  double bytes_per_s = 0;  // main memory
  double memory_bytes = 0;
  double compute_efficiency = 0.7;
  double memory_efficiency = 0.9;
};
// "h100", "h200": NVIDIA's data sheets of the SXM modules, dense bfloat16. Unknown names are an
// error that lists them.
absl::StatusOr<Device> find_device(std::string_view name);

// A few operations that run one after the other.
struct Cost {
  double flops = 0;
  double bytes = 0;
  double seconds = 0;

  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes += other.bytes;
    seconds += other.seconds;
    return *this;
  }
};

// What an eviction method does, as far as its cost goes.
struct MethodCost {
  enum class Scores {
    kNone,          // positions or chance
    kQueryRows,     // attention of `query_rows` rows
    kAttentionSum,  // attention of every prompt row, from stored sums of exponentials (H2O)
    kKeys,          // one pass over the keys
    kMoments,       // mean and covariance of the queries (expected attention)
  };
  enum class Draft {
    kNone,
    kEvictedCache,  // LAQ: decoded on the cache that its first stage leaves
    kFullCache,     // oracle, SpecKV by the model itself
    kOtherModel,    // SpecKV: another one prefills and decodes, the model reads the draft
  };
  bool evicts = true;  // false: the full cache
  Scores scores = Scores::kNone;
  int64_t query_rows = 0;
  int64_t lookahead_rows = 0;   // learned rows behind the prompt
  int64_t rank = 0;             // of their low-rank updates
  bool rows_in_prefill = true;  // false: they run over the finished prompt and read the weights
  Draft draft = Draft::kNone;
  int64_t draft_tokens = 0;
  int64_t first_stage_rows = 0;  // LAQ's first stage
  int64_t draft_layers = 0;      // kOtherModel: the model's own first layers; 0: `draft_model`
  ModelConfig draft_model;
};

// What a method's parameters leave open.
struct MethodSizes {
  int64_t adapter_tokens = 0;  // LookaheadKV's
  int64_t adapter_rank = 0;
  int64_t new_tokens = 0;                  // a draft of the whole reply has so many
  std::optional<ModelConfig> draft_model;  // the one that the parameter draft_model names
};

// From a method's name and resolved parameters. Errors: a method it does not know, LAQ with a first
// stage other than its default, a draft model whose shape is not in `sizes`.
absl::StatusOr<MethodCost> method_cost(std::string_view name, const Json& params,
                                       const MethodSizes& sizes);

class CostModel final {
 public:
  // element_bytes: of weights, activations and cache.
  CostModel(ModelConfig config, Device device, int64_t element_bytes = 2);

  // Matrix weights that every token goes through: all linear layers, without embedding and lm_head.
  double linear_weights() const;
  double weight_bytes() const;  // with embedding and lm_head, each once where they are tied
  // Keys and values of `entries` a layer and KV head.
  double cache_bytes(double entries) const;

  // The prompt's rows: linear layers and causal attention, and the last row's logits.
  Cost prefill(int64_t prompt_len) const;

  // Everything between prefill and the first token beyond the full cache's.
  struct Eviction {
    Cost rows;   // learned rows, or the draft
    Cost score;  // their attention on the prompt's keys
    Cost evict;  // gathering the kept entries
    Cost total() const;
  };
  Eviction eviction(const MethodCost& method, int64_t prompt_len, int64_t budget) const;

  // One step of `arms` rows, each over `entries` a layer and KV head.
  Cost decode_step(int64_t arms, double entries) const;

  // Bytes beyond the weights at the height of prefill with eviction: by layers, one layer in full
  // and the activations; else every layer.
  double peak_bytes(const MethodCost& method, int64_t prompt_len, int64_t budget,
                    bool by_layers) const;

 private:
  Cost operation(double flops, double bytes) const;
  // `rows` rows through all linear layers; the weights are read once.
  Cost linear_rows(double rows, bool read_weights) const;
  // Rows that each see `entries` keys, all layers; keys and values read once.
  Cost attention_rows(double rows, double entries) const;
  Cost logits(double rows) const;
  // The model that writes the method's draft.
  CostModel drafter(const MethodCost& method) const;

  ModelConfig config_;
  Device device_;
  double element_;
};

}  // namespace kvlab
