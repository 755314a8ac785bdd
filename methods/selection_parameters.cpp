// The parameters that all scored methods share, and their reading.
#include "harness/base/check.h"
#include "harness/base/status.h"
#include "methods/preset_parts.h"
#include "methods/scored_policy.h"

namespace kvlab {
namespace {

template <typename Enum>
Enum named(const Json& params, const char* key,
           std::initializer_list<std::pair<std::string_view, Enum>> names) {
  const auto& text = params.at(key).get_ref<const std::string&>();
  for (const auto& [name, value] : names) {
    if (name == text) {
      return value;
    }
  }
  KVLAB_CHECK(false);  // resolve_params lets only the listed choices through
}

}  // namespace

std::vector<MethodParameter> selection_parameters(const SelectionDefaults& defaults) {
  return {
      number_parameter("sinks", "first prompt entries, always kept, inside the budget",
                       defaults.sinks, 0),
      number_parameter(defaults.window_name, defaults.window_meaning, defaults.window, 0),
      choice_parameter("group_reduction", "over the query heads of a KV head",
                       defaults.group_reduction, {"mean", "max", "sum"}),
      choice_parameter("head_scope",
                       "kv_head: each KV head chooses; layer: one choice for all its heads",
                       defaults.head_scope, {"kv_head", "layer"}),
      choice_parameter("pooling", "over neighbouring positions, stride 1", defaults.pooling,
                       {"none", "max", "avg"}),
      number_parameter("kernel", "width of the pooling, odd", defaults.kernel, 1),
      choice_parameter("pool_order", "pooling after or before the group reduction", "after_group",
                       {"after_group", "before_group"}),
      choice_parameter(
          "allocation",
          "uniform; pyramid: falling with depth; adaptive: by score over a layer's heads",
          defaults.allocation, {"uniform", "pyramid", "adaptive"}),
      number_parameter("pyramid_beta", "the last layer gets 1/beta of the mean", 20.0, 1),
      choice_parameter("pyramid_rounding", "exact keeps the total", "exact",
                       {"exact", "kvcache_factory", "kvpress"}),
      number_parameter("adaptive_floor", "share of the uniform budget that every head is sure of",
                       0.2, 0, 1),
      choice_parameter("adaptive_rounding", "exact keeps the sum of a layer", "exact",
                       {"exact", "adakv", "kvpress"}),
      flag_parameter("adaptive_normalize",
                     "weigh a head by the share of its scores that its uniform budget holds",
                     false),
  };
}

absl::StatusOr<SelectionOptions> read_selection_options(const Json& params,
                                                        const std::string& window_name) {
  SelectionOptions options;
  options.sinks = params.at("sinks").get<int64_t>();
  options.window = params.at(window_name).get<int64_t>();
  options.group_reduction = named<GroupReduction>(params, "group_reduction",
                                                  {{"mean", GroupReduction::kMean},
                                                   {"max", GroupReduction::kMax},
                                                   {"sum", GroupReduction::kSum}});
  options.one_head = params.at("head_scope") == "layer";
  options.pooling = named<PoolKind>(
      params, "pooling",
      {{"none", PoolKind::kNone}, {"max", PoolKind::kMax}, {"avg", PoolKind::kAverage}});
  options.kernel = params.at("kernel").get<int64_t>();
  if (options.kernel % 2 == 0) {
    return invalid_argument("parameter \"kernel\" is {}, must be odd", options.kernel);
  }
  options.pool_before_group = params.at("pool_order") == "before_group";
  options.allocation = named<Allocation>(params, "allocation",
                                         {{"uniform", Allocation::kUniform},
                                          {"pyramid", Allocation::kPyramid},
                                          {"adaptive", Allocation::kAdaptive}});
  options.pyramid.beta = params.at("pyramid_beta").get<double>();
  options.pyramid.rounding =
      named<PyramidRounding>(params, "pyramid_rounding",
                             {{"exact", PyramidRounding::kExact},
                              {"kvcache_factory", PyramidRounding::kKvcacheFactory},
                              {"kvpress", PyramidRounding::kKvpress}});
  options.adaptive.floor = params.at("adaptive_floor").get<double>();
  options.adaptive.rounding = named<AdaptiveRounding>(params, "adaptive_rounding",
                                                      {{"exact", AdaptiveRounding::kExact},
                                                       {"adakv", AdaptiveRounding::kAdakv},
                                                       {"kvpress", AdaptiveRounding::kKvpress}});
  options.adaptive.normalize = params.at("adaptive_normalize").get<bool>();
  return options;
}

}  // namespace kvlab
