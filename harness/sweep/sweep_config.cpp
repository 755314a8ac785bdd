#include "harness/sweep/sweep_config.h"

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "harness/sweep/expand.h"
#include "harness/sweep/json_schema.h"

namespace kvlab {
namespace {

absl::StatusOr<BudgetSpec> parse_budget(const Json& value, const std::string& place) {
  if (value.is_object() && value.contains("share")) {
    return BudgetSpec{.tokens = 0, .share = value.at("share").get<double>()};
  }
  if (!value.is_number_integer() || value.get<int64_t>() < 1) {
    return invalid_argument(
        "{}: a budget is a whole number of entries of at least 1, or {{\"share\": 0.1}}; got {}",
        place, dump_json(value));
  }
  return BudgetSpec{.tokens = value.get<int64_t>(), .share = std::nullopt};
}

absl::StatusOr<std::vector<BudgetSpec>> parse_budgets(const Json& object,
                                                      const std::string& place) {
  std::vector<BudgetSpec> budgets;
  if (!object.contains("budgets")) {
    return budgets;
  }
  for (const Json& value : object.at("budgets")) {
    const std::string here = fmt::format("{}budgets[{}]", place, budgets.size());
    KVLAB_ASSIGN_OR_RETURN(const BudgetSpec budget, parse_budget(value, here));
    for (const BudgetSpec& other : budgets) {
      if (other == budget) {
        return invalid_argument("{}: the budget {} stands twice", here, budget.text());
      }
    }
    budgets.push_back(budget);
  }
  return budgets;
}

// A list where the schema allows one value or a list of them.
Json as_list(const Json& value) { return value.is_array() ? value : Json::array({value}); }

absl::Status parse_methods(const Json& file, const std::string& origin, SweepConfig& config) {
  KVLAB_ASSIGN_OR_RETURN(const std::vector<BudgetSpec> shared, parse_budgets(file, origin + ": "));
  size_t index = 0;
  for (const Json& entry : file.at("methods")) {
    MethodSpec spec;
    spec.place = fmt::format("methods[{}]", index++);
    spec.budgets = shared;
    Json combinations = Json::array({Json::object()});
    if (entry.is_string()) {
      spec.name = entry.get<std::string>();
    } else {
      spec.name = entry.at("name").get<std::string>();
      spec.label = entry.value("label", "");
      combinations = cross_product(entry.value("params", Json::object()));
      KVLAB_ASSIGN_OR_RETURN(std::vector<BudgetSpec> own,
                             parse_budgets(entry, fmt::format("{}: {}.", origin, spec.place)));
      if (!own.empty()) {
        spec.budgets = std::move(own);
      }
    }
    if (combinations.empty()) {
      return invalid_argument("{}: {}: a parameter's list of values is empty", origin, spec.place);
    }
    for (const Json& params : combinations) {
      spec.params = params;
      config.methods.push_back(spec);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::filesystem::path> find_model_dir(const std::string& name_or_path) {
  const std::filesystem::path dir = model_path(name_or_path);
  if (std::filesystem::exists(dir / "config.json")) {
    return dir;
  }
  return not_found(
      "model \"{}\": no config.json in {}, nor below {}; give a Hugging Face directory, or run "
      "scripts/setup for the default model",
      name_or_path, dir.string(), (cache_dir() / "models").string());
}

absl::StatusOr<SweepConfig> load_sweep_config(const std::filesystem::path& path) {
  const std::string origin = path.string();
  KVLAB_ASSIGN_OR_RETURN(const Json written, read_json_file(path, {.allow_comments = true}));
  KVLAB_RETURN_IF_ERROR(check_schema(written, sweep_schema(), origin));
  KVLAB_ASSIGN_OR_RETURN(Json file, expand_variables(written, origin));
  const Json groups = file.value("groups", Json::object());
  file.erase("groups");
  KVLAB_ASSIGN_OR_RETURN(file, expand_lists(file, groups, origin));
  KVLAB_RETURN_IF_ERROR(check_schema(file, sweep_schema(), origin));  // what groups brought in

  SweepConfig config;
  config.path = path;
  config.source = written;
  config.name = file.value("name", path.stem().string());
  config.dtype = file.value("dtype", config.dtype);
  config.device = file.value("device", config.device);
  config.threads = file.value("threads", config.threads);
  config.prefill_chunk = file.value("prefill_chunk", config.prefill_chunk);
  for (const Json& model : as_list(file.at("model"))) {
    auto dir = find_model_dir(model.get<std::string>());
    if (!dir.ok()) {
      return with_context(dir.status(), origin);
    }
    config.models.push_back(*dir);
  }
  for (const Json& entry : file.at("benchmarks")) {
    BenchmarkSpec spec{.name = entry.at("name").get<std::string>(), .params = entry};
    spec.params.erase("name");
    config.benchmarks.push_back(std::move(spec));
  }
  KVLAB_RETURN_IF_ERROR(parse_methods(file, origin, config));
  if (file.contains("question_aware")) {
    config.question_aware.clear();
    for (const Json& aware : as_list(file.at("question_aware"))) {
      config.question_aware.push_back(aware.get<bool>());
    }
  }
  for (const Json& rule : file.value("exclude", Json::array())) {
    config.exclude.push_back(rule);
  }
  const Json store = file.value("store", Json::object());
  config.store_prompts = store.value("prompts", config.store_prompts);
  config.store_selections = store.value("selections", config.store_selections);
  const Json sanity = file.value("sanity", Json::object());
  config.sanity_after_samples = sanity.value("after_samples", config.sanity_after_samples);
  const Json bands = sanity.value("bands", Json::object());
  for (const auto& [task, band] : bands.items()) {
    config.sanity_bands[task] = {band.at(0).get<double>(), band.at(1).get<double>()};
  }
  return config;
}

}  // namespace kvlab
