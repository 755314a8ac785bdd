#include "benchmarks/ruler/ruler_benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "benchmarks/ruler/file_source.h"
#include "benchmarks/ruler/options.h"
#include "benchmarks/ruler/sample_cache.h"
#include "benchmarks/ruler/scorer.h"
#include "benchmarks/ruler/tasks.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

// Where the answers stand in the context, in per cent of its bytes, to one decimal.
std::vector<double> answer_depths(const RulerItem& item, size_t context_size) {
  std::vector<double> depths;
  const std::string_view context = std::string_view(item.user_text).substr(0, context_size);
  for (const std::string& output : item.outputs) {
    const size_t at = context.find(output);
    if (at != context.npos && context_size > 0) {
      const double share = static_cast<double>(at) / static_cast<double>(context_size);
      depths.push_back(std::round(share * 1000) / 10);
    }
  }
  return depths;
}

Sample make_sample(const RulerTask& task, const RulerItem& item, int64_t index, int64_t length,
                   bool chat_template) {
  Sample sample;
  sample.benchmark = "ruler";
  sample.task = task.name;
  sample.length = length;
  sample.index = index;
  sample.prompt = item.user_text;
  sample.question_begin = ruler_question_begin(task, item.user_text);
  sample.answer_prefix = item.answer_prefix;
  sample.chat_template = chat_template;
  sample.references = item.outputs;
  sample.max_new_tokens = task.tokens_to_generate;
  if (task.family == RulerFamily::kNeedles) {
    const std::vector<double> depths = answer_depths(item, sample.question_begin);
    if (!depths.empty()) {
      sample.extra["depth"] = depths[0];
    }
    if (depths.size() > 1) {
      sample.extra["depths"] = depths;
    }
  }
  return sample;
}

// That every length asked for is there, of every task where the tasks were named.
absl::Status check_lengths(const RulerOptions& options, bool every_task,
                           const std::vector<RulerFile>& files) {
  const std::filesystem::path place = options.file.empty() ? options.folder : options.file;
  for (const int64_t length : options.settings.lengths) {
    const auto has = [&](const std::string& task) {
      return std::any_of(files.begin(), files.end(), [&](const RulerFile& file) {
        return (file.length == length || file.length == 0) &&
               (task.empty() || file.task->name == task);
      });
    };
    if (!has("")) {
      return not_found("{} has no file of length {}; leave it out of \"lengths\"", place.string(),
                       length);
    }
    for (const std::string& task : options.tasks) {
      if (every_task && !has(task)) {
        return not_found("{} has no file of {} at length {}; take the lengths in two benchmarks",
                         place.string(), task, length);
      }
    }
  }
  return absl::OkStatus();
}

// The files that the options name, at the lengths they name.
absl::StatusOr<std::vector<RulerFile>> chosen_files(const RulerOptions& options, bool every_task) {
  std::vector<RulerFile> files;
  if (!options.file.empty()) {
    // The file's name says the task, or the folder's where the file is called validation.jsonl.
    std::string name = options.file.stem().string();
    if (find_ruler_task(name).status().code() == absl::StatusCode::kInvalidArgument) {
      name = options.tasks.size() == 1 ? options.tasks[0]
                                       : options.file.parent_path().filename().string();
    }
    auto task = find_ruler_task(name);
    if (!task.ok()) {
      return invalid_argument(
          "file: the name of {} is no task of RULER; say which it is with \"tasks\"",
          options.file.string());
    }
    int64_t length = 0;
    if (auto found = find_ruler_files(options.file.parent_path(), {name}, true); found.ok()) {
      length = found->front().length;
    }
    files.push_back({*task, options.file, length});
  } else {
    KVLAB_ASSIGN_OR_RETURN(files, find_ruler_files(options.folder, options.tasks, every_task));
  }
  const std::vector<int64_t>& lengths = options.settings.lengths;
  std::erase_if(files, [&](const RulerFile& file) {
    return file.length > 0 && options.lengths_given &&
           std::find(lengths.begin(), lengths.end(), file.length) == lengths.end();
  });
  if (options.lengths_given) {
    KVLAB_RETURN_IF_ERROR(check_lengths(options, every_task, files));
  }
  return files;
}

// Whether the files say themselves how an answer begins; they must agree, as protocols do.
absl::StatusOr<bool> files_have_answer_prefix(const std::vector<RulerFile>& files) {
  std::optional<bool> all;
  for (const RulerFile& file : files) {
    KVLAB_ASSIGN_OR_RETURN(const RulerFileContents contents, read_ruler_file(file.path));
    if (all && *all != contents.has_answer_prefix) {
      return invalid_argument(
          "{} has {} 'answer_prefix', unlike {}: these are two protocols; run them as two "
          "benchmarks",
          file.path.string(), contents.has_answer_prefix ? "an" : "no",
          files.front().path.string());
    }
    all = contents.has_answer_prefix;
  }
  return all.value_or(false);
}

absl::StatusOr<std::vector<Sample>> from_files(const RulerOptions& options, bool every_task) {
  KVLAB_ASSIGN_OR_RETURN(const std::vector<RulerFile> files, chosen_files(options, every_task));
  std::vector<Sample> samples;
  for (const RulerFile& file : files) {
    const std::vector<int64_t>& lengths = options.settings.lengths;
    const int64_t length =
        file.length == 0 && options.lengths_given && lengths.size() == 1 ? lengths[0] : file.length;
    KVLAB_ASSIGN_OR_RETURN(const RulerFileContents contents, read_ruler_file(file.path));
    const std::vector<RulerItem>& items = contents.items;
    const std::string hash = contents.content_hash.substr(0, 12);
    const size_t count = options.samples_given
                             ? std::min(items.size(), static_cast<size_t>(options.settings.samples))
                             : items.size();
    for (size_t i = 0; i < count; ++i) {
      Sample sample = make_sample(*file.task, items[i], static_cast<int64_t>(i), length,
                                  options.settings.chat_template);
      sample.dataset = fmt::format("ruler-file@{}", hash);
      sample.key = fmt::format("ruler/{}/{}/file-{}/{}", file.task->name, length, hash, i);
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

}  // namespace

std::vector<std::string> RulerBenchmark::tasks() const {
  std::vector<std::string> names;
  for (const RulerTask& task : ruler_tasks()) {
    names.emplace_back(task.name);
  }
  return names;
}

absl::StatusOr<Json> RulerBenchmark::resolve_protocol(const Json& params) const {
  KVLAB_ASSIGN_OR_RETURN(const RulerOptions options, parse_ruler_options(params));
  const bool from_file = !options.file.empty() || !options.folder.empty();
  bool has_prefix = true;
  if (from_file) {
    KVLAB_ASSIGN_OR_RETURN(const std::vector<RulerFile> files,
                           chosen_files(options, params.contains("tasks")));
    KVLAB_ASSIGN_OR_RETURN(has_prefix, files_have_answer_prefix(files));
  }
  return Json{{"name", "ruler"},
              {"chat_template", options.settings.chat_template},
              {"length_counted_with", from_file                         ? "file"
                                      : options.settings.count_template ? "model"
                                                                        : "base"},
              {"answer_prefix", has_prefix ? "begins the reply" : "none in the file"},
              {"truncation", "none"},
              {"min_new_tokens", 0},
              {"stop_texts", Json::array()},
              {"control_characters", "newline"},
              {"metric", "string_match (qa_1, qa_2: any reference; others: share of references)"}};
}

absl::StatusOr<std::vector<Sample>> RulerBenchmark::load_samples(const Json& params,
                                                                 const Tokenizer& tokenizer,
                                                                 const PromptFormat& format) const {
  KVLAB_ASSIGN_OR_RETURN(const RulerOptions options, parse_ruler_options(params));
  if (!options.file.empty() || !options.folder.empty()) {
    return from_files(options, params.contains("tasks"));
  }
  const PromptSettings& settings = options.settings;
  const std::string format_name = settings.count_template ? "model" : "base";
  RulerSourceLoader loader(settings.paths);
  std::vector<Sample> samples;
  for (const std::string& name : options.tasks) {
    KVLAB_ASSIGN_OR_RETURN(const RulerTask* task, find_ruler_task(name));
    KVLAB_ASSIGN_OR_RETURN(const LoadedSources loaded, loader.load(*task));
    const std::string data_hash = sha256_hex(
        fmt::format("{}|{}|{}|{}", kRulerGeneratorVersion, tokenizer.content_hash(),
                    settings.count_template ? format.template_hash : "base", loaded.hash));
    for (const int64_t length : settings.lengths) {
      RulerRequest request;
      request.task = task;
      request.length = length;
      request.samples = settings.samples;
      request.seed = settings.seed;
      if (settings.count_template) {
        request.prompt_format = format;
      }
      KVLAB_ASSIGN_OR_RETURN(const std::vector<RulerItem> items,
                             cached_ruler(request, loaded.sources, loaded.hash, tokenizer));
      for (size_t i = 0; i < items.size(); ++i) {
        Sample sample =
            make_sample(*task, items[i], static_cast<int64_t>(i), length, settings.chat_template);
        sample.dataset = fmt::format("ruler-{}/{}@{}", kRulerGeneratorVersion, loaded.name,
                                     data_hash.substr(0, 12));
        sample.key =
            fmt::format("ruler/{}/{}/seed{}/{}/{}", name, length, settings.seed, format_name, i);
        samples.push_back(std::move(sample));
      }
    }
  }
  return samples;
}

absl::StatusOr<Score> RulerBenchmark::score(const Sample& sample, std::string_view reply) const {
  KVLAB_ASSIGN_OR_RETURN(const RulerTask* task, find_ruler_task(sample.task));
  return ruler_score(sample.references, task->any_reference, reply);
}

}  // namespace kvlab
