#include "harness/cli/model_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <utility>

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/interrupt.h"
#include "harness/base/json.h"
#include "harness/base/status.h"
#include "harness/cli/threads_option.h"
#include "harness/model/load_options.h"
#include "harness/model/threads.h"
#include "harness/text/prompt_builder.h"
#include "harness/text/text_file.h"
#include "methods/registry.h"

namespace kvlab {
namespace {

// key=value pairs; a value that is JSON (a number, true) is taken as such, anything else as text.
absl::StatusOr<Json> parse_settings(const std::vector<std::string>& settings) {
  Json params = Json::object();
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return invalid_argument("--set \"{}\": write it as key=value", setting);
    }
    const std::string key = setting.substr(0, equals);
    const std::string value = setting.substr(equals + 1);
    if (params.contains(key)) {
      return invalid_argument("--set {}: given twice", key);
    }
    const auto json = parse_json(value, key);
    params[key] = json.ok() ? *json : Json(value);
  }
  return params;
}

absl::StatusOr<std::optional<ChosenMethod>> choose_method(const ModelFlags& flags) {
  if (flags.method.empty()) {
    if (!flags.budget.empty() || !flags.settings.empty()) {
      return invalid_argument("--budget and --set belong to a --method");
    }
    return std::optional<ChosenMethod>();
  }
  KVLAB_ASSIGN_OR_RETURN(const Json params, parse_settings(flags.settings));
  ChosenMethod chosen;
  KVLAB_ASSIGN_OR_RETURN(chosen.policy, make_policy(flags.method, params));
  KVLAB_ASSIGN_OR_RETURN(const MethodInfo* info, find_method(flags.method));
  const bool needs_budget = info->needs_budget;
  if (needs_budget && flags.budget.empty()) {
    return invalid_argument(
        "the method {} needs a --budget: entries per layer and KV head (128) or a share of the "
        "prompt (12.5%)",
        flags.method);
  }
  if (!needs_budget && !flags.budget.empty()) {
    return invalid_argument("the method {} takes no --budget", flags.method);
  }
  if (needs_budget) {
    KVLAB_ASSIGN_OR_RETURN(chosen.budget, parse_budget(flags.budget));
  }
  return std::optional<ChosenMethod>(std::move(chosen));
}

absl::Status check_positions(const LoadedPrompt& prompt, int64_t max_new_tokens) {
  const auto prompt_len = static_cast<int64_t>(prompt.token_ids.size());
  const int64_t extra = prompt.method
                            ? std::max(prompt.method->policy->extra_positions(), max_new_tokens)
                            : max_new_tokens;
  const int64_t positions = prompt.model->config().max_positions;
  if (extra > positions - prompt_len) {
    return invalid_argument(
        "the prompt has {} tokens and {} more may follow, but the model has {} positions: shorten "
        "the prompt or --max-new-tokens",
        prompt_len, extra, positions);
  }
  return absl::OkStatus();
}

}  // namespace

void add_model_flags(CLI::App& command, ModelFlags& flags, bool method_required) {
  command
      .add_option("--model", flags.model, "Hugging Face model directory, or a name in the cache")
      ->required();
  command.add_option("--prompt-file", flags.prompt_file, "Prompt text (UTF-8)")->required();
  auto* raw = command.add_flag("--raw", flags.raw, "The text as it is, without a chat template");
  command
      .add_flag_callback(
          "--chat", [] {}, "The text as the user's turn (default)")
      ->excludes(raw);
  auto* method =
      command.add_option("--method", flags.method, "Eviction method (kvlab list methods)");
  if (method_required) {
    method->required();
  }
  command.add_option("--budget", flags.budget,
                     "Entries kept per layer and KV head (128), or a share (12.5%)");
  command.add_option("--set", flags.settings, "A parameter of the method, key=value; repeatable")
      ->allow_extra_args(false);
  command.add_option("--dtype", flags.dtype, "float32 or bfloat16")->capture_default_str();
  command.add_option("--device", flags.device, "cpu or cuda")->capture_default_str();
  add_threads_option(command, flags.threads);
  command.add_option("--chunk-size", flags.chunk_size, "Prompt tokens a prefill step")
      ->capture_default_str();
}

absl::StatusOr<BudgetSpec> parse_budget(const std::string& text) {
  const auto bad = [&] {
    return invalid_argument(
        "--budget \"{}\": give a number of entries (128) or a share of the prompt (12.5%)", text);
  };
  BudgetSpec spec;
  const char* end = text.data() + text.size();
  if (text.ends_with('%')) {
    double percent = 0;
    const auto result = std::from_chars(text.data(), end - 1, percent);
    if (result.ec != std::errc() || result.ptr != end - 1 || !(percent > 0 && percent <= 100)) {
      return bad();
    }
    spec.share = percent / 100;
    return spec;
  }
  const auto result = std::from_chars(text.data(), end, spec.tokens);
  if (result.ec != std::errc() || result.ptr != end || spec.tokens < 1) {
    return bad();
  }
  return spec;
}

absl::StatusOr<LoadedPrompt> load_prompt(const ModelFlags& flags, int64_t max_new_tokens) {
  const auto start = Clock::now();
  LoadedPrompt prompt;
  KVLAB_ASSIGN_OR_RETURN(prompt.load_options, parse_load_options(flags.dtype, flags.device));
  if (flags.threads > 0) {
    set_compute_threads(flags.threads);
  }
  KVLAB_ASSIGN_OR_RETURN(prompt.method, choose_method(flags));
  KVLAB_ASSIGN_OR_RETURN(const std::string text, read_utf8_file(flags.prompt_file));
  prompt.model_dir = model_path(flags.model);
  KVLAB_ASSIGN_OR_RETURN(prompt.tokenizer, Tokenizer::load(prompt.model_dir));
  PromptFormat format;
  if (!flags.raw) {
    KVLAB_ASSIGN_OR_RETURN(format, PromptFormat::load(prompt.model_dir));
  }
  if (text.empty()) {
    return invalid_argument("{}: the prompt is empty", flags.prompt_file);
  }
  PromptRequest request;
  request.user_text = text;
  request.chat_template = !flags.raw;
  auto built = build_prompt(request, *prompt.tokenizer, format);
  if (!built.ok()) {
    return with_context(built.status(), flags.prompt_file);
  }
  prompt.token_ids = std::move(built->token_ids);
  KVLAB_ASSIGN_OR_RETURN(prompt.model, CausalLm::load(prompt.model_dir, prompt.load_options));
  if (prompt.method) {
    std::optional<Budget> budget;
    if (prompt.method->budget) {
      budget =
          Budget{prompt.method->budget->resolve(static_cast<int64_t>(prompt.token_ids.size()))};
    }
    KVLAB_RETURN_IF_ERROR(prompt.method->policy->check(prompt.model->config(), budget));
  }
  KVLAB_RETURN_IF_ERROR(check_positions(prompt, max_new_tokens));
  prompt.load_s = seconds_since(start);
  return prompt;
}

absl::StatusOr<PreparedPrompt> prepare_prompt(const ModelFlags& flags, const LoadedPrompt& prompt,
                                              int64_t max_new_tokens) {
  PreparedPrompt prepared;
  PrefillOptions options;
  options.chunk_size = flags.chunk_size;
  if (prompt.method) {
    options.needs = prompt.method->policy->needs();
  }
  const auto start = Clock::now();
  KVLAB_ASSIGN_OR_RETURN(prepared.state, prompt.model->prefill(prompt.token_ids, options));
  prepared.prefill_s = seconds_since(start);
  if (!prompt.method || !prompt.method->budget) {
    return prepared;
  }
  const auto select_start = Clock::now();
  prepared.budget_entries = prompt.method->budget->resolve(prepared.state->prompt_len());
  DraftModels drafts(prompt.model_dir, prompt.load_options);
  SelectionSettings settings;
  settings.max_new_tokens = max_new_tokens;
  settings.stop_ids = prompt.model->config().stop_ids;
  settings.draft_models = &drafts;
  settings.keep_going = [] { return !interrupted(); };
  const SelectionRequest request{prompt.method->policy.get(), {prepared.budget_entries}};
  KVLAB_ASSIGN_OR_RETURN(SelectionBatch batch,
                         select_entries(*prompt.model, prepared.state, {&request, 1}, settings));
  KVLAB_RETURN_IF_ERROR(batch.arms.front().status());
  prepared.selected = std::move(batch.arms.front()).value();
  prepared.select_s = seconds_since(select_start);
  return prepared;
}

}  // namespace kvlab
