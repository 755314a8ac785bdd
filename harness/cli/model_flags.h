// What `generate` and `select` share: the model, its prompt and the method, from the command line.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/generation/policy_runner.h"
#include "harness/model/causal_lm.h"
#include "harness/sweep/budget_spec.h"
#include "harness/text/tokenizer.h"
#include "methods/eviction_policy.h"

namespace CLI {
class App;
}

namespace kvlab {

struct ModelFlags {
  std::string model;
  std::string prompt_file;
  bool raw = false;
  std::string dtype = "bfloat16";
  std::string device = "cpu";
  int threads = 0;  // 0: all
  int64_t chunk_size = 2048;
  std::string method;
  std::string budget;
  std::vector<std::string> settings;  // key=value
};

// Adds the options; whether a method must be named is the command's to say.
void add_model_flags(CLI::App& command, ModelFlags& flags, bool method_required);

// A method and its budget, checked against the model.
struct ChosenMethod {
  std::unique_ptr<EvictionPolicy> policy;
  std::optional<BudgetSpec> budget;  // none: the method takes none
};

// "128" or "12.5%".
absl::StatusOr<BudgetSpec> parse_budget(const std::string& text);

// A prompt ready to run, and the time that loading took.
struct LoadedPrompt {
  std::filesystem::path model_dir;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<int32_t> token_ids;
  std::shared_ptr<CausalLm> model;
  LoadOptions load_options;
  std::optional<ChosenMethod> method;
  double load_s = 0;
};

// Sets the threads, loads everything and refuses what cannot run: a wrong dtype, device, method,
// parameter or budget, an empty prompt, more positions than the model has.
absl::StatusOr<LoadedPrompt> load_prompt(const ModelFlags& flags, int64_t max_new_tokens);

// One prompt's prefill and the entries its method keeps.
struct PreparedPrompt {
  std::shared_ptr<PromptState> state;
  std::optional<SelectedArm> selected;  // none: no method was named, or it takes no budget
  int64_t budget_entries = 0;
  double prefill_s = 0;
  double select_s = 0;
};
absl::StatusOr<PreparedPrompt> prepare_prompt(const ModelFlags& flags, const LoadedPrompt& prompt,
                                              int64_t max_new_tokens);

}  // namespace kvlab
