// kvlab generate: a greedy reply to one prompt, with or without eviction.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>

#include "harness/base/interrupt.h"
#include "harness/base/json.h"
#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "harness/cli/model_flags.h"
#include "harness/generation/greedy.h"

namespace kvlab {
namespace {

constexpr int64_t kShownLogits = 10;

struct GenerateFlags {
  ModelFlags model;
  int64_t max_new_tokens = 128;
  bool json = false;
};

// The best next tokens of the prompt, best first; among equals the lower id.
Json best_logits(const at::Tensor& logits, const Tokenizer& tokenizer) {
  const at::Tensor values = logits.to(at::kCPU, at::kFloat).contiguous();
  const float* data = values.const_data_ptr<float>();
  std::vector<int32_t> ids(static_cast<size_t>(values.numel()));
  std::iota(ids.begin(), ids.end(), 0);
  const auto shown = std::min<int64_t>(kShownLogits, values.numel());
  std::partial_sort(ids.begin(), ids.begin() + shown, ids.end(), [data](int32_t a, int32_t b) {
    return data[a] != data[b] ? data[a] > data[b] : a < b;
  });
  Json best = Json::array();
  for (int64_t i = 0; i < shown; ++i) {
    const int32_t id = ids[static_cast<size_t>(i)];
    best.push_back({{"id", id},
                    {"token", tokenizer.decode({&id, 1}, /*skip_special_tokens=*/false)},
                    {"logit", data[id]}});
  }
  return best;
}

absl::Status generate(const GenerateFlags& flags) {
  if (flags.max_new_tokens < 1) {
    return invalid_argument("--max-new-tokens {}: give 1 or more", flags.max_new_tokens);
  }
  catch_interrupts();
  KVLAB_ASSIGN_OR_RETURN(const LoadedPrompt prompt, load_prompt(flags.model, flags.max_new_tokens));
  KVLAB_ASSIGN_OR_RETURN(const PreparedPrompt prepared,
                         prepare_prompt(flags.model, prompt, flags.max_new_tokens));
  KvCache cache = prepared.selected
                      ? KvCache::compact(*prepared.state, prepared.selected->result.selection,
                                         flags.max_new_tokens)
                      : KvCache::full(prepared.state, flags.max_new_tokens);
  const int64_t entries = cache.prompt_entries();
  std::vector<ArmRequest> requests;
  requests.push_back({.cache = std::move(cache),
                      .first_logits = prepared.state->last_logits,
                      .max_new_tokens = flags.max_new_tokens,
                      .min_new_tokens = 0,
                      .stop_ids = prompt.model->config().stop_ids});
  KVLAB_ASSIGN_OR_RETURN(
      const std::vector<ArmReply> replies,
      decode_greedy(*prompt.model, std::move(requests),
                    {.on_step = [](int64_t /*steps*/) { return !interrupted(); }}));
  const ArmReply& reply = replies.front();
  const std::string text = prompt.tokenizer->decode(reply.token_ids, /*skip_special_tokens=*/true);
  if (!flags.json) {
    fmt::print("{}\n", text);
  } else {
    Json out = {{"prompt_tokens", prompt.token_ids.size()},
                {"token_ids", reply.token_ids},
                {"text", text},
                {"stop_reason", stop_reason_name(reply.stop_reason)},
                {"first_logits", best_logits(prepared.state->last_logits, *prompt.tokenizer)},
                {"kept_entries", entries},
                {"timings",
                 {{"load_s", prompt.load_s},
                  {"prefill_s", prepared.prefill_s},
                  {"select_s", prepared.select_s},
                  {"decode_s", reply.decode_s},
                  {"decode_steps", reply.steps}}}};
    if (prompt.method) {
      out["method"] = prompt.method->policy->name();
      out["parameters"] = prompt.method->policy->resolved_params();
      if (prompt.method->budget) {
        out["budget"] = prepared.budget_entries;
      }
    }
    fmt::print("{}\n", dump_json(out, 2));
  }
  if (std::fflush(stdout) != 0) {
    return unavailable("cannot write the reply to the standard output");
  }
  return absl::OkStatus();
}

}  // namespace

void add_generate_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("generate", "Write a greedy reply to one prompt");
  const auto flags = std::make_shared<GenerateFlags>();
  add_model_flags(*command, flags->model, /*method_required=*/false);
  command->add_option("--max-new-tokens", flags->max_new_tokens, "Longest reply")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Token ids, first logits and timings as JSON");
  command->footer(
      "Examples:\n"
      "  kvlab generate --model SmolLM2-135M-Instruct --prompt-file prompt.txt --max-new-tokens "
      "64\n"
      "  kvlab generate --model SmolLM2-135M-Instruct --prompt-file prompt.txt --method snapkv "
      "--budget 128 --json");
  command->callback([flags, &action] { action = [flags] { return generate(*flags); }; });
}

}  // namespace kvlab
