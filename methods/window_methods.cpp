// SnapKV and its relatives: the last prompt tokens say what matters.
#include "methods/preset_parts.h"
#include "methods/presets.h"
#include "methods/scorers.h"

namespace kvlab {
namespace {

constexpr char kWindowMeaning[] =
    "last prompt tokens: their queries are asked, their entries always kept, inside the budget";

std::vector<MethodParameter> window_parameters(int64_t window, const std::string& pooling,
                                               const std::string& allocation) {
  return with_selection_parameters(
      {number_parameter("query_window",
                        "last prompt tokens whose queries are asked; 0: as many as window", 0, 0),
       row_reduction_parameter("mean")},
      {.window = window,
       .window_meaning = kWindowMeaning,
       .pooling = pooling,
       .allocation = allocation});
}

// kvpress 0.5.5, SnapKVPress: wider window, narrower average pooling of each query head.
Json kvpress_overrides() {
  return {{"window", 64}, {"kernel", 5}, {"pooling", "avg"}, {"pool_order", "before_group"}};
}

absl::StatusOr<std::unique_ptr<EvictionPolicy>> make_window_policy(const std::string& name,
                                                                   const Json& params) {
  const auto window = params.at("window").get<int64_t>();
  const auto query_window = params.at("query_window").get<int64_t>();
  const int64_t rows = query_window > 0 ? query_window : window;
  if (rows == 0) {
    return invalid_argument("{}: window and query_window are both 0, so there is no query to ask",
                            name);
  }
  return scored_policy(name, params,
                       make_attention_scorer(make_tail_source(rows), read_row_reduction(params)));
}

MethodDefinition window_method(MethodInfo info) {
  const std::string name = info.name;
  return {.info = std::move(info),
          .make = [name](const Json& params) { return make_window_policy(name, params); }};
}

}  // namespace

MethodDefinition snapkv_method() {
  return window_method({
      .name = "snapkv",
      .summary = "attention of the last 32 prompt tokens, max-pooled",
      .source = "arXiv 2404.14469; window and pooling of its LongBench runs, per KV head",
      .cost = "32 query rows against the prompt's keys",
      .parameters = window_parameters(32, "max", "uniform"),
      .variants = {{"kvpress", "NVIDIA/kvpress 0.5.5, SnapKVPress", kvpress_overrides()},
                   {"kvcache_factory",
                    "Zefan-Cai/KVCache-Factory, kv_head mode: window 8, sum over rows",
                    {{"window", 8}, {"row_reduction", "sum"}}}},
  });
}

MethodDefinition pyramidkv_method() {
  Json kvpress = kvpress_overrides();
  kvpress["pyramid_rounding"] = "kvpress";
  return window_method({
      .name = "pyramidkv",
      .summary = "SnapKV's scores, budgets falling from the first layer to the last",
      .source = "arXiv 2406.02069; beta 20 of its code",
      .cost = "as snapkv",
      .parameters = window_parameters(32, "max", "pyramid"),
      .variants =
          {{"kvpress", "NVIDIA/kvpress 0.5.5, PyramidKVPress", kvpress},
           {"kvcache_factory",
            "Zefan-Cai/KVCache-Factory: window 8, integer rounding; the total differs",
            {{"window", 8}, {"row_reduction", "sum"}, {"pyramid_rounding", "kvcache_factory"}}}},
  });
}

MethodDefinition adakv_method() {
  Json kvpress = kvpress_overrides();
  kvpress["adaptive_rounding"] = "kvpress";
  return window_method({
      .name = "adakv",
      .summary = "SnapKV's scores, a layer's budget shared over its heads by score",
      .source = "arXiv 2407.11550, algorithm 1; floor 0.2 as in its released runs",
      .cost = "as snapkv; heads of different length",
      .parameters = window_parameters(32, "max", "adaptive"),
      .variants = {{"kvpress", "NVIDIA/kvpress 0.5.5, AdaKVPress over SnapKVPress", kvpress},
                   {"adakv",
                    "FFY0/AdaKV: each head rounded by itself; the sum may differ",
                    {{"adaptive_rounding", "adakv"}}}},
  });
}

MethodDefinition tova_method() {
  MethodDefinition definition;
  definition.info = {
      .name = "tova",
      .summary = "attention of the last prompt token, averaged over all heads of a layer",
      .source = "arXiv 2401.06104; applied once, after prefill",
      .cost = "1 query row against the prompt's keys",
      .parameters =
          with_selection_parameters({row_reduction_parameter("mean")},
                                    {.window = 0, .head_scope = "layer", .pooling = "none"}),
      .variants = {{"kvpress",
                    "NVIDIA/kvpress 0.5.5, TOVAPress: the last token is always kept",
                    {{"window", 1}}}},
  };
  definition.make = [](const Json& params) {
    return scored_policy("tova", params,
                         make_attention_scorer(make_tail_source(1), read_row_reduction(params)));
  };
  return definition;
}

}  // namespace kvlab
