// The full cache: nothing is evicted.
#include "methods/choose.h"
#include "methods/presets.h"

namespace kvlab {
namespace {

class FullPolicy final : public EvictionPolicy {
 public:
  const std::string& name() const override {
    static const std::string name = "full";
    return name;
  }
  const Json& resolved_params() const override {
    static const Json params = Json::object();
    return params;
  }
  absl::Status check(const ModelConfig& /*model*/,
                     std::optional<Budget> /*budget*/) const override {
    return absl::OkStatus();
  }
  PrefillNeeds needs() const override { return {}; }
  absl::StatusOr<SelectionResult> select(const SelectionInput& input) const override {
    SelectionResult result;
    result.selection.prompt_len = input.prompt->prompt_len();
    for (const LayerState& layer : input.prompt->layers) {
      result.selection.kept.push_back(
          keep_all_entries(layer.keys.size(0), input.prompt->prompt_len()));
    }
    return result;
  }
  absl::Status check_by_layers() const override { return absl::OkStatus(); }
  absl::StatusOr<LayerSelector> select_by_layers(const SelectionInput& input) const override {
    return LayerSelector([prompt = input.prompt](int64_t layer, SelectionCost&) {
      return keep_all_entries(prompt->layers[static_cast<size_t>(layer)].keys.size(0),
                              prompt->prompt_len());
    });
  }
};

}  // namespace

MethodDefinition full_method() {
  MethodDefinition definition;
  definition.info = {.name = "full",
                     .summary = "the full cache, nothing evicted",
                     .source = "reference",
                     .cost = "none",
                     .parameters = {},
                     .variants = {},
                     .needs_budget = false};
  definition.make = [](const Json&) -> absl::StatusOr<std::unique_ptr<EvictionPolicy>> {
    return std::make_unique<FullPolicy>();
  };
  return definition;
}

}  // namespace kvlab
