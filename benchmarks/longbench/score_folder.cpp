#include "benchmarks/longbench/score_folder.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "benchmarks/longbench/tasks.h"
#include "harness/base/files.h"
#include "harness/base/status.h"
#include "harness/text/python_text.h"

namespace kvlab {
namespace {

struct Prediction {
  std::string origin;  // file and line
  std::string reply;
  std::vector<std::string> references;
  std::vector<std::string> classes;
  int64_t word_length = 0;
};

absl::StatusOr<std::vector<std::string>> strings(const Json& object, const std::string& key,
                                                 bool numbers_too, std::string_view origin) {
  KVLAB_ASSIGN_OR_RETURN(const Json values, json_get<Json>(object, key, origin));
  const auto wrong = [&] {
    return invalid_argument("{}: \"{}\" must be a list of strings", origin, key);
  };
  if (!values.is_array()) {
    return wrong();
  }
  std::vector<std::string> out;
  for (const Json& value : values) {
    if (value.is_string()) {
      out.push_back(value.get<std::string>());
    } else if (numbers_too && value.is_number_integer()) {
      out.push_back(value.dump());
    } else {
      return wrong();
    }
  }
  return out;
}

absl::StatusOr<Prediction> read_prediction(const Json& line, const LongBenchTask& task,
                                           bool by_length, std::string origin) {
  Prediction prediction{.origin = std::move(origin), .reply = {}, .references = {}, .classes = {}};
  KVLAB_ASSIGN_OR_RETURN(prediction.reply, json_get<std::string>(line, "pred", prediction.origin));
  // The count metric compares as text, so a number will do as its reference.
  KVLAB_ASSIGN_OR_RETURN(
      prediction.references,
      strings(line, "answers", task.metric == LongBenchMetric::kCount, prediction.origin));
  if (task.metric == LongBenchMetric::kClassification) {
    KVLAB_ASSIGN_OR_RETURN(prediction.classes,
                           strings(line, "all_classes", false, prediction.origin));
  }
  if (by_length) {
    KVLAB_ASSIGN_OR_RETURN(prediction.word_length,
                           json_get<int64_t>(line, "length", prediction.origin));
  }
  return prediction;
}

absl::StatusOr<std::vector<Prediction>> read_predictions(const std::filesystem::path& path,
                                                         const LongBenchTask& task,
                                                         bool by_length) {
  KVLAB_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  KVLAB_ASSIGN_OR_RETURN(const std::vector<JsonLine> lines, parse_json_lines(text, path.string()));
  std::vector<Prediction> predictions;
  for (const JsonLine& line : lines) {
    KVLAB_ASSIGN_OR_RETURN(Prediction prediction,
                           read_prediction(line.value, task, by_length,
                                           fmt::format("{}, line {}", path.string(), line.number)));
    predictions.push_back(std::move(prediction));
  }
  if (predictions.empty()) {
    return invalid_argument("{}: no predictions in it", path.string());
  }
  return predictions;
}

absl::StatusOr<LongBenchFileScore> score_file(const std::filesystem::path& path,
                                              const ScoreFolderOptions& options) {
  LongBenchFileScore result;
  const std::string file_name = path.filename().string();
  result.name = file_name.substr(0, file_name.find('.'));
  std::string_view task_name = result.name;
  constexpr std::string_view kSuffix = "_e";
  result.by_length = options.by_length || task_name.ends_with(kSuffix);
  if (task_name.ends_with(kSuffix)) {
    task_name.remove_suffix(kSuffix.size());
  }
  const absl::StatusOr<const LongBenchTask*> found = find_longbench_task(task_name);
  if (!found.ok()) {
    return with_context(found.status(), path.string());
  }
  const LongBenchTask& task = **found;
  result.metric = task.metric;
  KVLAB_ASSIGN_OR_RETURN(const std::vector<Prediction> predictions,
                         read_predictions(path, task, result.by_length));
  LongBenchScoring scoring = options.scoring;
  scoring.first_line = task.first_line_only ? scoring.first_line : FirstLine::kNone;
  // eval.py keeps one variable for the classes, so the last line's serve all lines.
  const std::vector<std::string>& classes = predictions.back().classes;
  std::array<std::vector<double>, 3> buckets;
  double total = 0;
  for (const Prediction& prediction : predictions) {
    const absl::StatusOr<double> score =
        longbench_score(task.metric, scoring, prediction.reply, prediction.references, classes);
    if (!score.ok()) {
      return with_context(score.status(), prediction.origin);
    }
    result.scores.push_back(*score);
    total += *score;
    buckets[longbench_bucket(prediction.word_length)].push_back(*score);
  }
  if (!result.by_length) {
    result.percent = python_round_2(100 * total / static_cast<double>(predictions.size()));
    return result;
  }
  for (size_t i = 0; i < buckets.size(); ++i) {
    result.bucket_count[i] = buckets[i].size();
    if (!buckets[i].empty()) {
      result.bucket_percent[i] = numpy_round_mean_percent(buckets[i]);
    }
  }
  return result;
}

}  // namespace

size_t longbench_bucket(int64_t word_length) {
  return word_length < 4000 ? 0 : (word_length < 8000 ? 1 : 2);
}

absl::StatusOr<std::vector<LongBenchFileScore>> score_longbench_folder(
    const std::filesystem::path& folder, const ScoreFolderOptions& options) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".jsonl") {
      paths.push_back(it->path());
    }
  }
  if (error) {
    return not_found("{}: cannot be listed: {}", folder.string(), error.message());
  }
  if (paths.empty()) {
    return not_found(
        "{}: no *.jsonl in it; expected LongBench prediction files such as qasper.jsonl",
        folder.string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<LongBenchFileScore> files;
  for (const std::filesystem::path& path : paths) {
    KVLAB_ASSIGN_OR_RETURN(LongBenchFileScore file, score_file(path, options));
    files.push_back(std::move(file));
  }
  return files;
}

Json longbench_result_json(const std::vector<LongBenchFileScore>& files) {
  Json result = Json::object();
  for (const LongBenchFileScore& file : files) {
    if (!file.by_length) {
      result[file.name] = file.percent;
      continue;
    }
    Json& buckets = result[file.name] = Json::object();
    for (size_t i = 0; i < kLongBenchBuckets.size(); ++i) {
      const std::optional<double>& percent = file.bucket_percent[i];
      buckets[std::string(kLongBenchBuckets[i])] = percent ? Json(*percent) : Json();
    }
  }
  return result;
}

}  // namespace kvlab
