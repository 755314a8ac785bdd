#include "harness/bench/prediction.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

struct Shape {
  const char* name;
  int64_t hidden, inner, layers, heads, kv_heads, head_dim, vocab;
  bool tied;
};
constexpr Shape kShapes[] = {
    {"smollm2-135m", 576, 1536, 30, 9, 3, 64, 49152, true},
    {"llama-3.2-1b", 2048, 8192, 16, 32, 8, 64, 128256, true},
    {"llama-3.1-8b", 4096, 14336, 32, 32, 8, 128, 128256, false},
    {"llama-3.1-70b", 8192, 28672, 80, 64, 8, 128, 128256, false},
    {"llama-3.1-405b", 16384, 53248, 126, 128, 8, 128, 128256, false},
};

TableCell number_cell(double value, int digits) {
  TableCell cell;
  cell.value = value;
  cell.text = fmt::format("{:.{}f}", value, digits);
  cell.count = cell.expected = 1;
  return cell;
}

// Three significant digits.
TableCell rounded_cell(double value) {
  return number_cell(value, value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3);
}

}  // namespace

absl::StatusOr<ModelConfig> known_shape(std::string_view name) {
  std::vector<std::string> names;
  for (const Shape& shape : kShapes) {
    if (name == shape.name) {
      ModelConfig config;
      config.model_type = "llama";
      config.hidden_size = shape.hidden;
      config.intermediate_size = shape.inner;
      config.num_layers = shape.layers;
      config.num_heads = shape.heads;
      config.num_kv_heads = shape.kv_heads;
      config.head_dim = shape.head_dim;
      config.vocab_size = shape.vocab;
      config.tie_word_embeddings = shape.tied;
      return config;
    }
    names.push_back(shape.name);
  }
  return not_found("no model shape \"{}\"; there are: {}, or give a folder with a config.json",
                   name, fmt::join(names, ", "));
}

std::vector<PredictedMethod> compared_methods(const ModelConfig& model) {
  MethodCost window;
  window.scores = MethodCost::Scores::kQueryRows;
  window.query_rows = 32;
  MethodCost lookahead = window;
  lookahead.lookahead_rows = 32;
  lookahead.rank = 8;
  MethodCost laq = window;
  laq.draft = MethodCost::Draft::kEvictedCache;
  laq.draft_tokens = 32;
  laq.first_stage_rows = 32;
  MethodCost self_draft = window;
  self_draft.draft = MethodCost::Draft::kFullCache;
  self_draft.draft_tokens = 32;
  self_draft.query_rows = 64;
  std::vector<PredictedMethod> methods = {{"streaming_llm", MethodCost{}, true},
                                          {"snapkv", window, true},
                                          {"lookahead_kv", lookahead, true},
                                          {"laq, 32 drafted", laq, false},
                                          {"draft by the model itself", self_draft, false}};
  MethodCost speckv = self_draft;
  speckv.draft = MethodCost::Draft::kOtherModel;
  speckv.draft_model = known_shape("llama-3.2-1b").value();
  if (model.vocab_size == speckv.draft_model.vocab_size &&
      model.num_layers > speckv.draft_model.num_layers) {
    methods.push_back({"speckv, 1B draft", speckv, false});
  }
  return methods;
}

Table prediction_table(const std::string& name, const ModelConfig& config, const Device& device,
                       const std::vector<int64_t>& lengths, int64_t budget) {
  Table table;
  table.title = fmt::format("predicted cost, {} on {}, budget {}", name, device.name, budget);
  table.attributes = {
      {"model", name}, {"device", device.name}, {"budget", fmt::format("{}", budget)}};
  table.caption = fmt::format(
      "By arithmetic: {:.0f} TFLOP/s x {}, {:.2f} TB/s x {}; 2 bytes a number; nothing measured",
      device.flops_per_s / 1e12, device.compute_efficiency, device.bytes_per_s / 1e12,
      device.memory_efficiency);
  table.row_headers = {"prompt", "method"};
  for (const auto& [column, detail] :
       std::vector<std::pair<const char*, const char*>>{{"devices", ""},
                                                        {"prefill", "TFLOP"},
                                                        {"prefill", "ms"},
                                                        {"rows or draft", "TFLOP"},
                                                        {"rows or draft", "ms"},
                                                        {"scores", "ms"},
                                                        {"eviction", "ms"},
                                                        {"eviction", "% of prefill"},
                                                        {"decode step", "ms"},
                                                        {"full cache's step", "ms"},
                                                        {"peak beyond weights", "GiB"},
                                                        {"kept cache", "GiB"}}) {
    table.columns.push_back({column, detail, detail});
  }
  int group = 0;
  for (const int64_t length : lengths) {
    const CostModel one(config, device);
    MethodCost nothing;
    nothing.evicts = false;
    const double needed = one.weight_bytes() + one.peak_bytes(nothing, length, length, false);
    const auto devices =
        std::max<int64_t>(1, static_cast<int64_t>(std::ceil(needed / (0.9 * device.memory_bytes))));
    Device together = device;
    together.flops_per_s *= static_cast<double>(devices);
    together.bytes_per_s *= static_cast<double>(devices);
    const CostModel model(config, together);
    const Cost prefill = model.prefill(length);
    for (const PredictedMethod& method : compared_methods(config)) {
      const CostModel::Eviction eviction = model.eviction(method.cost, length, budget);
      const auto kept = static_cast<double>(std::min(budget, length));
      TableRow row;
      row.group = group;
      row.headers = {fmt::format("{}", length), method.label};
      row.cells = {
          number_cell(static_cast<double>(devices), 0),
          rounded_cell(prefill.flops / 1e12),
          rounded_cell(prefill.seconds * 1e3),
          rounded_cell(eviction.rows.flops / 1e12),
          rounded_cell(eviction.rows.seconds * 1e3),
          rounded_cell(eviction.score.seconds * 1e3),
          rounded_cell(eviction.total().seconds * 1e3),
          number_cell(100 * eviction.total().seconds / prefill.seconds, 2),
          rounded_cell(model.decode_step(1, kept).seconds * 1e3),
          rounded_cell(model.decode_step(1, static_cast<double>(length)).seconds * 1e3),
          rounded_cell(model.peak_bytes(method.cost, length, budget, method.by_layers) / kGiB),
          rounded_cell(model.cache_bytes(kept) / kGiB)};
      table.rows.push_back(std::move(row));
    }
    ++group;
  }
  return table;
}

}  // namespace kvlab
