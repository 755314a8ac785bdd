#include "benchmarks/ruler/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "benchmarks/ruler/tasks.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr int64_t kShortest = 256;
constexpr int64_t kLongest = 1 << 22;

const std::vector<std::string_view> kCommonKeys = {
    "lengths", "samples",  "seed",  "template", "chat_template",
    "essays",  "hotpotqa", "punkt", "squad",    "wordlists"};

absl::Status check_keys(const Json& params, std::string_view benchmark,
                        std::vector<std::string_view> known) {
  if (!params.is_object()) {
    return invalid_argument("{}: settings are an object of keys", benchmark);
  }
  known.insert(known.end(), kCommonKeys.begin(), kCommonKeys.end());
  std::sort(known.begin(), known.end());
  for (const auto& [key, value] : params.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return invalid_argument("{}: unknown key '{}'; the keys are {}", benchmark, key,
                              fmt::join(known, ", "));
    }
  }
  return absl::OkStatus();
}

// A number or a list of numbers, without repeats, each within the bounds.
absl::StatusOr<std::vector<int64_t>> numbers(const Json& value, const std::string& key, int64_t low,
                                             int64_t high) {
  const Json list = value.is_array() ? value : Json::array({value});
  std::vector<int64_t> out;
  for (const Json& number : list) {
    if (!number.is_number_integer() || number.get<int64_t>() < low ||
        number.get<int64_t>() > high) {
      return invalid_argument("{}: {} is no integer from {} to {}", key, dump_json(number), low,
                              high);
    }
    if (std::find(out.begin(), out.end(), number.get<int64_t>()) != out.end()) {
      return invalid_argument("{}: {} stands there twice", key, number.get<int64_t>());
    }
    out.push_back(number.get<int64_t>());
  }
  if (out.empty()) {
    return invalid_argument("{}: the list is empty", key);
  }
  return out;
}

absl::StatusOr<int64_t> number(const Json& params, const std::string& key, int64_t fallback,
                               int64_t low, int64_t high) {
  if (!params.contains(key)) {
    return fallback;
  }
  if (!params.at(key).is_number_integer()) {
    return invalid_argument("{}: {} is no integer", key, dump_json(params.at(key)));
  }
  KVLAB_ASSIGN_OR_RETURN(const std::vector<int64_t> one, numbers(params.at(key), key, low, high));
  return one[0];
}

absl::StatusOr<PromptSettings> parse_settings(const Json& params, std::string_view benchmark) {
  PromptSettings settings;
  const std::string origin(benchmark);
  if (params.contains("lengths")) {
    KVLAB_ASSIGN_OR_RETURN(settings.lengths,
                           numbers(params.at("lengths"), "lengths", kShortest, kLongest));
  }
  KVLAB_ASSIGN_OR_RETURN(settings.samples,
                         number(params, "samples", settings.samples, 1, 1'000'000));
  // NumPy's legacy generator takes 32-bit seeds.
  KVLAB_ASSIGN_OR_RETURN(const int64_t seed,
                         number(params, "seed", 42, 0, std::numeric_limits<uint32_t>::max()));
  settings.seed = static_cast<uint64_t>(seed);
  KVLAB_ASSIGN_OR_RETURN(settings.chat_template,
                         json_get_or<bool>(params, "chat_template", true, origin));
  KVLAB_ASSIGN_OR_RETURN(const std::string format,
                         json_get_or<std::string>(params, "template", "base", origin));
  if (format != "base" && format != "model") {
    return invalid_argument("template: '{}' is neither 'base' nor 'model'", format);
  }
  settings.count_template = format == "model";
  if (settings.count_template && !settings.chat_template) {
    return invalid_argument("chat_template: false contradicts template: 'model'");
  }
  const std::vector<std::pair<const char*, std::filesystem::path*>> paths = {
      {"essays", &settings.paths.essays},
      {"squad", &settings.paths.squad},
      {"hotpotqa", &settings.paths.hotpotqa},
      {"wordlists", &settings.paths.wordlists},
      {"punkt", &settings.paths.punkt}};
  for (const auto& [key, path] : paths) {
    KVLAB_ASSIGN_OR_RETURN(const std::string text,
                           json_get_or<std::string>(params, key, "", origin));
    *path = text;
    if (!text.empty() && !std::filesystem::exists(*path)) {
      return not_found("{}: there is no {}", key, text);
    }
  }
  return settings;
}

}  // namespace

absl::StatusOr<RulerOptions> parse_ruler_options(const Json& params) {
  KVLAB_RETURN_IF_ERROR(check_keys(params, "ruler", {"tasks", "file", "folder"}));
  RulerOptions options;
  KVLAB_ASSIGN_OR_RETURN(options.settings, parse_settings(params, "ruler"));
  options.samples_given = params.contains("samples");
  options.lengths_given = params.contains("lengths");
  KVLAB_ASSIGN_OR_RETURN(const std::string file,
                         json_get_or<std::string>(params, "file", "", "ruler"));
  KVLAB_ASSIGN_OR_RETURN(const std::string folder,
                         json_get_or<std::string>(params, "folder", "", "ruler"));
  options.file = file;
  options.folder = folder;
  if (!file.empty() && !folder.empty()) {
    return invalid_argument("file and folder: only one of them can be given");
  }
  if ((!file.empty() || !folder.empty()) && options.settings.count_template) {
    return invalid_argument("template: a file's prompts have their lengths already; leave it out");
  }
  const Json tasks = params.contains("tasks") ? params.at("tasks") : Json("all");
  std::set<std::string> seen;
  for (const Json& task : tasks.is_array() ? tasks : Json::array({tasks})) {
    if (!task.is_string()) {
      return invalid_argument("tasks: {} is no name", dump_json(task));
    }
    const auto name = task.get<std::string>();
    if (name == "all") {
      for (const RulerTask& each : ruler_tasks()) {
        options.tasks.emplace_back(each.name);
      }
      continue;
    }
    KVLAB_RETURN_IF_ERROR(find_ruler_task(name).status());
    options.tasks.push_back(name);
  }
  for (const std::string& task : options.tasks) {
    if (!seen.insert(task).second) {
      return invalid_argument("tasks: '{}' stands there twice", task);
    }
  }
  if (options.tasks.empty()) {
    return invalid_argument("tasks: the list is empty");
  }
  return options;
}

absl::StatusOr<NeedleGridOptions> parse_needle_grid_options(const Json& params) {
  KVLAB_RETURN_IF_ERROR(check_keys(params, "needle_grid", {"depths"}));
  NeedleGridOptions options;
  KVLAB_ASSIGN_OR_RETURN(options.settings, parse_settings(params, "needle_grid"));
  if (params.contains("depths")) {
    KVLAB_ASSIGN_OR_RETURN(options.depths, numbers(params.at("depths"), "depths", 0, 100));
  }
  return options;
}

}  // namespace kvlab
