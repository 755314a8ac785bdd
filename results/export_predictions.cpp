#include "results/export_predictions.h"

#include <map>
#include <string>

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
  fs::path folder;         // MODEL/PROTOCOL/METHOD
  std::string experiment;  // what makes it another one than the others: hashes and names
  std::string task;
  std::string dataset;

  auto operator<=>(const Source&) const = default;
};

// Two experiments may have one folder's name (another dtype, or field of a protocol), and a task
// two data sets: a hash tells these apart.
fs::path file_of(const Source& source, const std::map<Source, std::string>& all) {
  std::string experiment;
  std::string dataset;
  for (const auto& [other, lines] : all) {
    if (other.folder == source.folder && other.experiment != source.experiment) {
      experiment = source.experiment;
    } else if (other.folder == source.folder && other.task == source.task &&
               other.dataset != source.dataset) {
      dataset = source.dataset;
    }
  }
  fs::path folder = source.folder;
  if (!experiment.empty() || !dataset.empty()) {
    folder += "-" + sha256_hex(experiment + dataset).substr(0, 8);
  }
  return folder / (source.task + ".jsonl");
}

}  // namespace

absl::StatusOr<std::vector<fs::path>> export_longbench_predictions(const Database& db,
                                                                   const fs::path& out) {
  KVLAB_RETURN_IF_ERROR(check_empty(out));
  KVLAB_ASSIGN_OR_RETURN(
      Statement select,
      db.prepare("SELECT c.model, c.protocol, c.label, c.method_hash, c.budget, c.question_aware, "
                 "c.task, y.reply, s.reference_answers, s.extra, c.sample, "
                 "(SELECT COUNT(DISTINCT hash) FROM methods WHERE label = c.label), "
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
    std::string method = select.text(2);
    if (select.int64(11) > 1) {
      method += "-" + select.text(3).substr(0, 8);
    }
    method += "-" + select.text(4) + (select.int64(5) != 0 ? "" : "-question-unaware");
    const std::string origin = fmt::format("{}, sample {}", db.path().string(), select.text(10));
    KVLAB_ASSIGN_OR_RETURN(const Json answers, parse_json(select.text_view(8), origin));
    KVLAB_ASSIGN_OR_RETURN(const Json extra, parse_json(select.text_view(9), origin));
    const Source source = {
        .folder = fs::path(folder_name(select.text(0))) / folder_name(select.text(1)) /
                  folder_name(method),
        .experiment =
            fmt::format("{} {} {} {}", select.text(12), select.text(13), select.text(3), method),
        .task = folder_name(select.text(6)),
        .dataset = select.text(14),
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
  std::vector<fs::path> written;
  for (const auto& [source, lines] : files) {
    written.push_back(out / file_of(source, files));
    KVLAB_RETURN_IF_ERROR(write_file(written.back(), lines));
  }
  return written;
}

}  // namespace kvlab
