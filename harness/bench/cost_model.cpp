#include "harness/bench/cost_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr double kFloatBytes = 4;
// Scores pass through memory this often: written, reduced, pooled, ranked.
constexpr double kScorePasses = 4;
// LAQ's default first stage, and its window.
constexpr const char* kFirstStage = "snapkv";
constexpr int64_t kFirstStageRows = 32;

// NVIDIA's data sheets, SXM modules: dense bfloat16 tensor cores, HBM.
const Device kDevices[] = {
    {.name = "h100", .flops_per_s = 989.4e12, .bytes_per_s = 3.35e12, .memory_bytes = 80e9},
    {.name = "h200", .flops_per_s = 989.4e12, .bytes_per_s = 4.8e12, .memory_bytes = 141e9},
};

double weights_of_layer(const ModelConfig& c) {
  const auto hidden = static_cast<double>(c.hidden_size);
  const auto q = static_cast<double>(c.num_heads * c.head_dim);
  const auto kv = static_cast<double>(c.num_kv_heads * c.head_dim);
  const auto inner = static_cast<double>(c.intermediate_size);
  return hidden * (2 * q + 2 * kv + 3 * inner);
}

double attention_width(const ModelConfig& c) {
  return static_cast<double>(c.num_heads * c.head_dim);
}

double layers(const ModelConfig& c) { return static_cast<double>(c.num_layers); }

int64_t number(const Json& params, const char* name) {
  return params.contains(name) && params.at(name).is_number_integer()
             ? params.at(name).get<int64_t>()
             : 0;
}

}  // namespace

absl::StatusOr<Device> find_device(std::string_view name) {
  std::vector<std::string> names;
  for (const Device& device : kDevices) {
    if (device.name == name) {
      return device;
    }
    names.push_back(device.name);
  }
  return not_found("no device \"{}\"; there are: {}", name, fmt::join(names, ", "));
}

absl::StatusOr<MethodCost> method_cost(std::string_view name, const Json& params,
                                       const MethodSizes& sizes) {
  MethodCost cost;
  using Scores = MethodCost::Scores;
  using Draft = MethodCost::Draft;
  if (name == "full") {
    cost.evicts = false;
  } else if (name == "random" || name == "streaming_llm") {
    cost.scores = Scores::kNone;
  } else if (name == "knorm" || name == "keydiff") {
    cost.scores = Scores::kKeys;
  } else if (name == "snapkv" || name == "pyramidkv" || name == "adakv") {
    cost.scores = Scores::kQueryRows;
    const int64_t rows = number(params, "query_window");
    cost.query_rows = rows > 0 ? rows : number(params, "window");
  } else if (name == "tova") {
    cost.scores = Scores::kQueryRows;
    cost.query_rows = 1;
  } else if (name == "h2o") {
    cost.scores = Scores::kAttentionSum;
  } else if (name == "expected_attention") {
    cost.scores = Scores::kMoments;
  } else if (name == "lookahead_kv") {
    cost.scores = Scores::kQueryRows;
    cost.lookahead_rows = sizes.adapter_tokens;
    cost.rank = sizes.adapter_rank;
    cost.query_rows = sizes.adapter_tokens + number(params, "window");
  } else if (name == "laq") {
    if (params.value("first_stage", kFirstStage) != kFirstStage ||
        number(params, "first_stage_budget") != 0) {
      return unimplemented("the cost model knows laq with {} at its own budget as first stage only",
                           kFirstStage);
    }
    const Json first_stage = params.value("first_stage_params", Json::object());
    cost.first_stage_rows = kFirstStageRows;
    if (!first_stage.empty()) {
      KVLAB_ASSIGN_OR_RETURN(const MethodCost first, method_cost(kFirstStage, first_stage, sizes));
      cost.first_stage_rows = first.query_rows;
    }
    cost.scores = Scores::kQueryRows;
    cost.draft = Draft::kEvictedCache;
    cost.draft_tokens = number(params, "draft_tokens");
    cost.query_rows = cost.draft_tokens + number(params, "stage2_window");
  } else if (name == "speckv" || name == "oracle") {
    cost.scores = Scores::kQueryRows;
    const bool whole_reply = name == "oracle" || number(params, "draft_tokens") == 0;
    cost.draft_tokens = whole_reply ? sizes.new_tokens : number(params, "draft_tokens");
    const int64_t asked = number(params, "reply_tokens");  // the oracle's; 0: all
    cost.query_rows = (asked > 0 ? std::min(asked, cost.draft_tokens) : cost.draft_tokens) +
                      number(params, "window");
    cost.draft_layers = number(params, "draft_layers");
    const bool named = !params.value("draft_model", std::string()).empty();
    if (named && !sizes.draft_model) {
      return unimplemented("the shape of {}'s draft model is not known", name);
    }
    if (named) {
      cost.draft_model = *sizes.draft_model;
    }
    cost.draft = named || cost.draft_layers > 0 ? Draft::kOtherModel : Draft::kFullCache;
  } else {
    return unimplemented("the cost model does not know the method \"{}\"", name);
  }
  return cost;
}

CostModel::CostModel(ModelConfig config, Device device, int64_t element_bytes)
    : config_(std::move(config)),
      device_(std::move(device)),
      element_(static_cast<double>(element_bytes)) {}

Cost CostModel::operation(double flops, double bytes) const {
  return {.flops = flops,
          .bytes = bytes,
          .seconds = std::max(flops / (device_.flops_per_s * device_.compute_efficiency),
                              bytes / (device_.bytes_per_s * device_.memory_efficiency))};
}

double CostModel::linear_weights() const { return layers(config_) * weights_of_layer(config_); }

double CostModel::weight_bytes() const {
  const auto table = static_cast<double>(config_.vocab_size * config_.hidden_size);
  return element_ * (linear_weights() + table * (config_.tie_word_embeddings ? 1 : 2));
}

double CostModel::cache_bytes(double entries) const {
  return 2 * element_ * entries * static_cast<double>(config_.num_kv_heads * config_.head_dim) *
         layers(config_);
}

Cost CostModel::linear_rows(double rows, bool read_weights) const {
  const double weights = linear_weights();
  const auto hidden = static_cast<double>(config_.hidden_size);
  const auto inner = static_cast<double>(config_.intermediate_size);
  const auto kv = static_cast<double>(config_.num_kv_heads * config_.head_dim);
  // Inputs and outputs of the linear layers; what stands between them is fused.
  const double activations =
      rows * layers(config_) * (4 * hidden + 2 * attention_width(config_) + 2 * kv + 3 * inner);
  return operation(2 * rows * weights, element_ * ((read_weights ? weights : 0) + activations));
}

Cost CostModel::attention_rows(double rows, double entries) const {
  const double width = attention_width(config_);
  return operation(4 * rows * entries * width * layers(config_),
                   cache_bytes(entries) + element_ * 2 * rows * width * layers(config_));
}

Cost CostModel::logits(double rows) const {
  const auto table = static_cast<double>(config_.vocab_size * config_.hidden_size);
  return operation(2 * rows * table,
                   element_ * table + kFloatBytes * rows * static_cast<double>(config_.vocab_size));
}

Cost CostModel::prefill(int64_t prompt_len) const {
  const auto n = static_cast<double>(prompt_len);
  Cost cost = linear_rows(n, /*read_weights=*/true);
  cost += attention_rows(n, n / 2);  // causal: half of the square
  cost += logits(1);
  return cost;
}

Cost CostModel::decode_step(int64_t arms, double entries) const {
  const auto rows = static_cast<double>(arms);
  Cost cost = linear_rows(rows, /*read_weights=*/true);
  const double width = attention_width(config_);
  // Every arm reads its own cache.
  cost += operation(4 * rows * entries * width * layers(config_),
                    rows * (cache_bytes(entries) + element_ * 2 * width * layers(config_)));
  cost += logits(rows);
  return cost;
}

CostModel CostModel::drafter(const MethodCost& method) const {
  CostModel writer = *this;
  if (method.draft_layers > 0) {
    writer.config_.num_layers = method.draft_layers;
  } else if (method.draft == MethodCost::Draft::kOtherModel) {
    writer.config_ = method.draft_model;
  }
  return writer;
}

Cost CostModel::Eviction::total() const {
  Cost sum = rows;
  sum += score;
  sum += evict;
  return sum;
}

CostModel::Eviction CostModel::eviction(const MethodCost& method, int64_t prompt_len,
                                        int64_t budget) const {
  Eviction cost;
  if (!method.evicts || budget >= prompt_len) {
    return cost;
  }
  const auto n = static_cast<double>(prompt_len);
  const auto kept = static_cast<double>(budget);
  const double width = attention_width(config_);
  const double depth = layers(config_);
  const double key_bytes = cache_bytes(n) / 2;
  const double head_scores =
      static_cast<double>(config_.num_heads) * n * depth * kFloatBytes * kScorePasses;
  const auto ask = [&](double rows) {
    return operation(2 * rows * n * width * depth, key_bytes + head_scores);
  };

  if (method.lookahead_rows > 0) {
    const auto rows = static_cast<double>(method.lookahead_rows);
    cost.rows = linear_rows(rows, /*read_weights=*/!method.rows_in_prefill);
    // Behind the prompt's rows of the same kernel; the keys and values are on the chip already.
    cost.rows += method.rows_in_prefill
                     ? operation(4 * rows * n * width * depth, element_ * 2 * rows * width * depth)
                     : attention_rows(rows, n);
    const auto hidden = static_cast<double>(config_.hidden_size);
    const auto inner = static_cast<double>(config_.intermediate_size);
    const auto kv = static_cast<double>(config_.num_kv_heads * config_.head_dim);
    const double low_rank = static_cast<double>(method.rank) * depth *
                            (2 * (hidden + width) + 2 * (hidden + kv) + 3 * (hidden + inner));
    cost.rows += operation(2 * rows * low_rank, element_ * low_rank);
  }
  if (method.draft != MethodCost::Draft::kNone) {
    const CostModel writer = drafter(method);
    const bool other = method.draft == MethodCost::Draft::kOtherModel;
    double entries = n;
    if (method.draft == MethodCost::Draft::kEvictedCache) {
      entries = kept;
      cost.rows += ask(static_cast<double>(method.first_stage_rows));
      cost.rows += operation(0, 2 * cache_bytes(kept));
    }
    if (other) {
      cost.rows += writer.prefill(prompt_len);
    }
    for (int64_t token = 0; token < method.draft_tokens; ++token) {
      cost.rows += writer.decode_step(1, entries + static_cast<double>(token));
    }
    if (other) {  // the model reads the draft in one pass
      cost.rows += linear_rows(static_cast<double>(method.draft_tokens), /*read_weights=*/true);
      cost.rows += attention_rows(static_cast<double>(method.draft_tokens), n);
    }
  }
  switch (method.scores) {
    case MethodCost::Scores::kNone:
      break;
    case MethodCost::Scores::kQueryRows:
      cost.score = ask(static_cast<double>(method.query_rows));
      break;
    case MethodCost::Scores::kAttentionSum:
      cost.score = ask(n / 2);
      break;
    case MethodCost::Scores::kKeys:
      cost.score = operation(
          4 * n * static_cast<double>(config_.num_kv_heads * config_.head_dim) * depth, key_bytes);
      break;
    case MethodCost::Scores::kMoments: {
      const auto head_dim = static_cast<double>(config_.head_dim);
      cost.score = operation(4 * n * width * head_dim * depth,
                             element_ * n * width * depth + 2 * key_bytes + head_scores);
      break;
    }
  }
  cost.evict = operation(0, 2 * cache_bytes(kept));  // read and written
  return cost;
}

double CostModel::peak_bytes(const MethodCost& method, int64_t prompt_len, int64_t budget,
                             bool by_layers) const {
  const auto n = static_cast<double>(prompt_len);
  const auto kept = static_cast<double>(std::min(budget, prompt_len));
  const double full = cache_bytes(n);
  if (!method.evicts || budget >= prompt_len) {
    return full;
  }
  if (!by_layers) {
    if (method.draft == MethodCost::Draft::kOtherModel) {
      // The other model's cache is gone before entries are gathered.
      return full + std::max(cache_bytes(kept), drafter(method).cache_bytes(n));
    }
    const bool two = method.draft == MethodCost::Draft::kEvictedCache;
    return full + cache_bytes(kept) * (two ? 2 : 1);
  }
  const double rows = 2 * element_ * n * static_cast<double>(config_.hidden_size);
  return full / layers(config_) + rows + cache_bytes(kept);
}

}  // namespace kvlab
