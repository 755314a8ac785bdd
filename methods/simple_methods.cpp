// Methods without queries of their own: positions, chance, keys, recorded sums.
#include "methods/preset_parts.h"
#include "methods/presets.h"
#include "methods/scorers.h"

namespace kvlab {

MethodDefinition random_method() {
  MethodDefinition definition;
  definition.info = {
      .name = "random",
      .summary = "entries drawn at random, anew for each layer, KV head and prompt",
      .source = "baseline",
      .cost = "next to none",
      .parameters = with_selection_parameters(
          {number_parameter("seed", "of the noise; the prompt's tokens are mixed in", 0, 0)}, {}),
      .variants = {},
  };
  definition.make = [](const Json& params) {
    return scored_policy("random", params, make_random_scorer(params.at("seed").get<uint64_t>()));
  };
  return definition;
}

MethodDefinition streaming_llm_method() {
  MethodDefinition definition;
  definition.info = {
      .name = "streaming_llm",
      .summary = "the first 4 entries and the most recent ones",
      .source = "arXiv 2309.17453; positions stay those of the prompt",
      .cost = "next to none",
      .parameters = with_selection_parameters({}, {.sinks = 4}),
      .variants = {},
  };
  definition.make = [](const Json& params) {
    return scored_policy("streaming_llm", params, make_recency_scorer());
  };
  return definition;
}

MethodDefinition knorm_method() {
  MethodDefinition definition;
  definition.info = {
      .name = "knorm",
      .summary = "the shortest keys",
      .source = "arXiv 2406.11430, in every layer",
      .cost = "one pass over the keys",
      .parameters = with_selection_parameters({}, {}),
      .variants = {},
  };
  definition.make = [](const Json& params) {
    return scored_policy("knorm", params, make_key_norm_scorer());
  };
  return definition;
}

MethodDefinition keydiff_method() {
  MethodDefinition definition;
  definition.info = {
      .name = "keydiff",
      .summary = "the keys least like the mean direction of all keys",
      .source = "arXiv 2504.15364, applied once instead of block by block",
      .cost = "two passes over the keys",
      .parameters = with_selection_parameters({}, {}),
      .variants = {},
  };
  definition.make = [](const Json& params) {
    return scored_policy("keydiff", params, make_key_diff_scorer());
  };
  return definition;
}

MethodDefinition h2o_method() {
  MethodDefinition definition;
  definition.info = {
      .name = "h2o",
      .summary = "attention received from all prompt tokens, and a recent part",
      .source = "arXiv 2306.14048; half of the budget for each, per KV head",
      .cost = "every prompt row against its keys a second time, in prefill",
      .parameters = with_selection_parameters(
          {number_parameter("recent_share",
                            "share of the budget that the last entries get at least", 0.5, 0, 1),
           choice_parameter("normalize",
                            "sum over the queries; or mean over those that see the entry", "sum",
                            {"sum", "mean"})},
          {}),
      .variants = {{"kvpress",
                    "NVIDIA/kvpress 0.5.5, ObservedAttentionPress: mean, no recent part",
                    {{"recent_share", 0.0}, {"normalize", "mean"}}},
                   {"kvcache_factory",
                    "Zefan-Cai/KVCache-Factory: the last 8 entries only",
                    {{"recent_share", 0.0}, {"window", 8}}}},
  };
  definition.make = [](const Json& params) -> absl::StatusOr<std::unique_ptr<EvictionPolicy>> {
    KVLAB_ASSIGN_OR_RETURN(SelectionOptions options, read_selection_options(params));
    options.recent_share = params.at("recent_share").get<double>();
    return make_scored_policy(
        "h2o", params, make_attention_sums_scorer(params.at("normalize") == "mean"), options);
  };
  return definition;
}

}  // namespace kvlab
