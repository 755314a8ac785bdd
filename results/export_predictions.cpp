#include "results/export_predictions.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

namespace fs = std::filesystem;

// A label as a folder's name.
std::string folder_name(std::string label) {
  for (char& c : label) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    c = plain ? c : '_';
  }
  return label == "." || label == ".." ? "_" : label;
}

absl::Status check_empty(const fs::path& out) {
  std::error_code error;
  if (fs::exists(out) && !fs::is_empty(out, error)) {
    return failed_precondition("{}: is there and not an empty folder; name another one",
                               out.string());
  }
  return absl::OkStatus();
}

// What the records of one file are of.
struct Source {
  fs::path folder;         // MODEL/PROTOCOL/METHOD-BUDGET
  std::string task;        // as a file's name
  std::string experiment;  // hashes and names that make it another experiment of one folder
  std::string dataset;

  auto operator<=>(const Source&) const = default;
};

// Two experiments may have one folder's name (another dtype, parameter or field of a protocol), and
// a task two data sets: folders where they meet get a hash that tells them apart.
class FolderNames {
 public:
  explicit FolderNames(const std::map<Source, std::string>& files) {
    for (const auto& [source, lines] : files) {
      experiments_[source.folder].insert(source.experiment);
      datasets_[{source.folder, source.task}].insert(source.dataset);
    }
  }

  fs::path file_of(const Source& source) const {
    std::string apart;
    if (experiments_.at(source.folder).size() > 1) {
      apart += source.experiment;
    }
    if (datasets_.at({source.folder, source.task}).size() > 1) {
      apart += source.dataset;
    }
    fs::path folder = source.folder;
    if (!apart.empty()) {
      folder += "-" + sha256_hex(apart).substr(0, 8);
    }
    return folder / (source.task + ".jsonl");
  }

 private:
  std::map<fs::path, std::set<std::string>> experiments_;
  std::map<std::pair<fs::path, std::string>, std::set<std::string>> datasets_;  // of folder, task
};

}  // namespace

absl::StatusOr<ExportedPredictions> export_longbench_predictions(const Database& db,
                                                                 const fs::path& out) {
  KVLAB_RETURN_IF_ERROR(check_empty(out));
  KVLAB_ASSIGN_OR_RETURN(
      Statement select,
      db.prepare("SELECT c.model, c.protocol, c.label, c.method_hash, c.budget, c.question_aware, "
                 "c.task, y.reply, s.reference_answers, s.extra, c.sample, "
                 "c.model_hash, c.protocol_hash, c.dataset "
                 "FROM cells AS c JOIN replies AS y ON y.result_id = c.result_id "
                 "JOIN samples AS s ON s.dataset = c.dataset AND s.sample_key = c.sample "
                 "WHERE c.benchmark = 'longbench' AND c.status = 'ok' "
                 "ORDER BY c.task, c.sample_index, c.sample"));
  std::map<Source, std::string> files;
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      break;
    }
    const std::string method =
        select.text(2) + "-" + select.text(4) + (select.int64(5) != 0 ? "" : "-question-unaware");
    const std::string origin = fmt::format("{}, sample {}", db.path().string(), select.text(10));
    KVLAB_ASSIGN_OR_RETURN(const Json answers, parse_json(select.text_view(8), origin));
    KVLAB_ASSIGN_OR_RETURN(const Json extra, parse_json(select.text_view(9), origin));
    const Source source = {
        .folder = fs::path(folder_name(select.text(0))) / folder_name(select.text(1)) /
                  folder_name(method),
        .task = folder_name(select.text(6)),
        .experiment =
            fmt::format("{} {} {} {}", select.text(11), select.text(12), select.text(3), method),
        .dataset = select.text(13),
    };
    files[source] += dump_json({{"pred", select.text(7)},
                                {"answers", answers},
                                {"all_classes", extra.value("classes", Json())},
                                {"length", extra.value("word_length", int64_t{0})}}) +
                     "\n";
  }
  if (files.empty()) {
    return not_found("{}: holds no LongBench replies", db.path().string());
  }
  const FolderNames names(files);
  ExportedPredictions written;
  for (const auto& [source, lines] : files) {
    written.files.push_back(out / names.file_of(source));
    KVLAB_RETURN_IF_ERROR(write_file(written.files.back(), lines));
  }
  KVLAB_ASSIGN_OR_RETURN(written.failed,
                         db.query_int("SELECT COUNT(*) FROM cells WHERE benchmark = 'longbench' "
                                      "AND status = 'failed'"));
  return written;
}

}  // namespace kvlab
