// Methods that ask a draft of the reply, and the oracle, which asks the reply itself.
#include <filesystem>

#include "harness/base/files.h"
#include "harness/model/model_fingerprint.h"
#include "methods/preset_parts.h"
#include "methods/presets.h"
#include "methods/scorers.h"

namespace kvlab {

MethodDefinition oracle_method() {
  MethodDefinition definition;
  definition.info = {
      .name = "oracle",
      .summary = "attention of the model's own full-cache reply: what draft methods approximate",
      .source = "reference; no bound, a method may score above it",
      .cost = "the whole reply on the full cache, then its rows against the prompt's keys",
      .parameters = with_selection_parameters(
          {row_reduction_parameter("mean"),
           number_parameter("reply_tokens", "reply tokens that are asked; 0: all of them", 0, 0),
           flag_parameter("own_keys", "the reply's earlier tokens take part in its attention",
                          true)},
          {.pooling = "max"}),
      .variants = {},
  };
  definition.make = [](const Json& params) {
    const DraftSourceOptions options{
        .tail_rows = params.at("window").get<int64_t>(),
        .draft_tokens = params.at("reply_tokens").get<int64_t>(),
        .is_reply = true,
        .own_keys = params.at("own_keys").get<bool>(),
    };
    return scored_policy(
        "oracle", params,
        make_attention_scorer(make_full_draft_source(options, {}), read_row_reduction(params)));
  };
  return definition;
}

MethodDefinition laq_method() {
  MethodDefinition definition;
  definition.info = {
      .name = "laq",
      .summary = "attention of a draft reply decoded on a first, cheaply evicted cache",
      .source = "arXiv 2505.20334: stage2_window 0 is LAQ, 8 or 32 LAQ++; per KV head",
      .cost = "the first stage, draft_tokens decode steps, their rows against the prompt's keys",
      .parameters = with_selection_parameters(
          {row_reduction_parameter("mean"),
           number_parameter("draft_tokens", "draft tokens at most; the paper's code: 8", 8, 1),
           text_parameter("first_stage", "method that makes the cache of the draft", "snapkv"),
           {.name = "first_stage_params",
            .meaning = "its parameters",
            .default_value = Json::object(),
            .choices = {},
            .minimum = std::nullopt,
            .maximum = std::nullopt},
           number_parameter("first_stage_budget", "entries of that cache; 0: the method's budget",
                            0, 0),
           choice_parameter("compat",
                            "official: the released code's mask, which hides some late entries",
                            "corrected", {"corrected", "official"})},
          {.window_name = "stage2_window",
           .window_meaning = "last prompt tokens asked beside the draft, their entries always kept",
           .pooling = "max"}),
      .variants = {{"comparison",
                    "LookaheadKV's comparison (arXiv 2603.10899): 32 draft tokens",
                    {{"draft_tokens", 32}}}},
  };
  definition.make = [](const Json& params) -> absl::StatusOr<std::unique_ptr<EvictionPolicy>> {
    absl::StatusOr<std::unique_ptr<EvictionPolicy>> first =
        make_policy(params.at("first_stage").get<std::string>(), params.at("first_stage_params"));
    if (!first.ok()) {
      return with_context(first.status(), "laq: parameter \"first_stage\"");
    }
    if (!(*first)->check_by_layers().ok() || (*first)->extra_positions() > 0) {
      return invalid_argument(
          "laq: parameter \"first_stage\" is {}, which runs the model again itself; name a method "
          "that looks at the prompt alone",
          (*first)->name());
    }
    Json resolved = params;
    resolved["first_stage_params"] = (*first)->resolved_params();
    const DraftSourceOptions options{
        .tail_rows = params.at("stage2_window").get<int64_t>(),
        .draft_tokens = params.at("draft_tokens").get<int64_t>(),
        .own_keys = false,
        .mask_as_prompt = params.at("compat") == "official",
    };
    return scored_policy("laq", resolved,
                         make_attention_scorer(make_staged_draft_source(
                                                   options, *std::move(first),
                                                   params.at("first_stage_budget").get<int64_t>()),
                                               read_row_reduction(params)),
                         "stage2_window");
  };
  return definition;
}

MethodDefinition speckv_method() {
  MethodDefinition definition;
  definition.info = {
      .name = "speckv",
      .summary = "attention of a smaller model's draft reply, read by the model, and of the window",
      .source = "arXiv 2506.08373 with dense prefill; 32 draft tokens as in arXiv 2603.10899",
      .cost = "the draft model's prefill and decoding, one pass of the model over the draft",
      .parameters = with_selection_parameters(
          {row_reduction_parameter("max"),
           number_parameter("draft_tokens", "draft tokens at most; 0: the whole reply", 32, 0),
           text_parameter("draft_model",
                          "the draft model's folder, or name in the cache; empty: the model itself",
                          ""),
           number_parameter("draft_layers",
                            "draft by the model's first layers only; 0: all of them", 0, 0)},
          {.window = 32,
           .window_meaning = "last prompt tokens asked beside the draft, their entries always kept",
           .group_reduction = "max",
           .pooling = "max"}),
      .variants = {{"whole_reply",
                    "its released code: as many draft tokens as the task allows",
                    {{"draft_tokens", 0}}}},
  };
  definition.make = [](const Json& params) -> absl::StatusOr<std::unique_ptr<EvictionPolicy>> {
    const DraftSourceOptions options{
        .tail_rows = params.at("window").get<int64_t>(),
        .draft_tokens = params.at("draft_tokens").get<int64_t>(),
        .own_keys = true,
    };
    const auto draft_model = params.at("draft_model").get<std::string>();
    const DraftModel draft{.model_dir = draft_model.empty() ? "" : model_path(draft_model).string(),
                           .layers = params.at("draft_layers").get<int64_t>()};
    if (!draft.model_dir.empty() && draft.layers > 0) {
      return invalid_argument(
          "speckv: draft_model and draft_layers are both given; the draft is another model, or the "
          "first layers of the model itself");
    }
    // Rows of two draft models under one name must never be taken for the same method.
    Json resolved = params;
    if (!draft.model_dir.empty() && std::filesystem::exists(draft.model_dir)) {
      KVLAB_ASSIGN_OR_RETURN(resolved["draft_weights"], weights_fingerprint(draft.model_dir));
    }
    return scored_policy(
        "speckv", resolved,
        make_attention_scorer(make_full_draft_source(options, draft), read_row_reduction(params)));
  };
  return definition;
}

}  // namespace kvlab
