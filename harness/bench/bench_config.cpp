#include "harness/bench/bench_config.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/base/status.h"
#include "harness/bench/bench_schema_text.h"
#include "harness/sweep/expand.h"
#include "harness/sweep/json_schema.h"
#include "harness/sweep/sweep_config.h"

namespace kvlab {
namespace {

const Json& bench_schema() {
  static const Json* const schema = [] {
    auto parsed = parse_json(kBenchSchemaText, "bench.schema.json");
    KVLAB_CHECK(parsed.ok());
    return new Json(*std::move(parsed));
  }();
  return *schema;
}

std::vector<int64_t> numbers(const Json& file, const char* key, std::vector<int64_t> fallback) {
  return file.contains(key) ? file.at(key).get<std::vector<int64_t>>() : std::move(fallback);
}

absl::Status keep_methods(const std::vector<std::string>& wanted, BenchConfig& config) {
  std::vector<BenchMethod> kept;
  for (const std::string& name : wanted) {
    const size_t before = kept.size();
    for (const BenchMethod& method : config.methods) {
      if (method.label == name || (method.label.empty() && method.name == name)) {
        kept.push_back(method);
      }
    }
    if (kept.size() == before) {
      return not_found("{}: no method \"{}\" in the file", config.path.string(), name);
    }
  }
  config.methods = std::move(kept);
  return absl::OkStatus();
}

}  // namespace

std::string_view form_name(BenchForm form) {
  return form == BenchForm::kByLayers ? "by_layers" : "shared";
}

absl::StatusOr<BenchConfig> load_bench_config(const std::filesystem::path& path,
                                              const BenchOverrides& overrides) {
  const std::string origin = path.string();
  BenchConfig config;
  config.path = path;
  KVLAB_ASSIGN_OR_RETURN(config.source, read_json_file(path, {.allow_comments = true}));
  KVLAB_ASSIGN_OR_RETURN(Json file, expand_variables(config.source, origin));
  KVLAB_ASSIGN_OR_RETURN(file, expand_lists(file, Json::object(), origin));
  KVLAB_RETURN_IF_ERROR(check_schema(file, bench_schema(), origin));
  auto dir = find_model_dir(file.at("model").get<std::string>());
  if (!dir.ok()) {
    return with_context(dir.status(), origin);
  }
  config.model_dir = *dir;
  KVLAB_ASSIGN_OR_RETURN(config.model, ModelConfig::load(*dir));
  config.random_weights = file.value("random_weights", false);
  if (file.contains("positions")) {
    if (!config.random_weights) {
      return invalid_argument(
          "{}: positions can be raised with random_weights only: a trained model knows its own",
          origin);
    }
    config.model.max_positions = file.at("positions").get<int64_t>();
  }
  config.dtype = file.value("dtype", config.dtype);
  config.device = file.value("device", config.device);
  config.threads =
      overrides.threads >= 0 ? static_cast<int>(overrides.threads) : file.value("threads", 0);
  config.prefill_chunk = file.value("prefill_chunk", config.prefill_chunk);
  for (const Json& entry : file.at("methods")) {
    if (entry.is_string()) {
      config.methods.push_back(
          {.name = entry.get<std::string>(), .label = "", .params = Json::object()});
    } else {
      config.methods.push_back({.name = entry.at("name").get<std::string>(),
                                .label = entry.value("label", ""),
                                .params = entry.value("params", Json::object())});
    }
  }
  if (!overrides.methods.empty()) {
    KVLAB_RETURN_IF_ERROR(keep_methods(overrides.methods, config));
  }
  const auto chosen = [](const std::vector<int64_t>& first, std::vector<int64_t> otherwise) {
    return first.empty() ? std::move(otherwise) : first;
  };
  config.budgets = chosen(overrides.budgets, numbers(file, "budgets", config.budgets));
  config.lengths = chosen(overrides.lengths, numbers(file, "lengths", {}));
  config.arms = chosen(overrides.arms, numbers(file, "arms", config.arms));
  config.new_tokens = file.value("new_tokens", config.new_tokens);
  config.repetitions =
      overrides.repetitions > 0 ? overrides.repetitions : file.value("repetitions", int64_t{5});
  config.warmup = file.value("warmup", config.warmup);
  config.seed = file.value("seed", config.seed);
  if (file.contains("forms")) {
    config.forms.clear();
    for (const Json& form : file.at("forms")) {
      config.forms.push_back(form == "shared" ? BenchForm::kShared : BenchForm::kByLayers);
    }
  }
  for (const auto* list : {&config.budgets, &config.lengths, &config.arms}) {
    if (std::any_of(list->begin(), list->end(), [](int64_t value) { return value < 1; })) {
      return invalid_argument("lengths, budgets and arms must be 1 or more");
    }
  }
  const int64_t longest = *std::max_element(config.lengths.begin(), config.lengths.end());
  if (longest + config.new_tokens > config.model.max_positions) {
    return invalid_argument(
        "{}: {} tokens and {} new ones need more than the model's {} positions; random_weights "
        "with positions measures longer prompts",
        origin, longest, config.new_tokens, config.model.max_positions);
  }
  return config;
}

}  // namespace kvlab
