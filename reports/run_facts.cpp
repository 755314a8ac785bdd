#include "reports/run_facts.h"

#include "harness/base/status.h"
#include "reports/escape.h"

namespace kvlab {
namespace {

constexpr size_t kMaxValues = 4;

// The first column's texts, joined; the rest counted.
absl::StatusOr<std::string> joined(const Database& db, const char* sql) {
  KVLAB_ASSIGN_OR_RETURN(Statement select, db.prepare(sql));
  std::string text;
  size_t seen = 0;
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      break;
    }
    if (++seen <= kMaxValues) {
      text += (text.empty() ? "" : ", ") + truncate_to_width(plain_line(select.text(0)), 80);
    }
  }
  return seen > kMaxValues ? fmt::format("{} and {} more", text, seen - kMaxValues) : text;
}

}  // namespace

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> run_facts(const Database& db) {
  KVLAB_ASSIGN_OR_RETURN(const int64_t cells, db.query_int("SELECT count(*) FROM results"));
  KVLAB_ASSIGN_OR_RETURN(const int64_t samples, db.query_int("SELECT count(*) FROM samples"));
  KVLAB_ASSIGN_OR_RETURN(const int64_t failed,
                         db.query_int("SELECT count(*) FROM results WHERE status = 'failed'"));
  KVLAB_ASSIGN_OR_RETURN(const int64_t skipped,
                         db.query_int("SELECT count(*) FROM results WHERE status = 'skipped'"));
  std::vector<std::pair<std::string, std::string>> facts;
  facts.emplace_back("results",
                     fmt::format("{} cells of {} samples{}{}", cells, samples,
                                 failed > 0 ? fmt::format(", {} failed", failed) : "",
                                 skipped > 0 ? fmt::format(", {} skipped", skipped) : ""));
  constexpr std::pair<const char*, const char*> kQueries[] = {
      {"models",
       "SELECT DISTINCT label || coalesce(' (' || json_extract(json, '$.dtype') || ')', "
       "'') FROM models ORDER BY id"},
      {"protocols", "SELECT DISTINCT label FROM protocols ORDER BY id"},
      {"made by",
       "SELECT DISTINCT 'kvlab ' || version || CASE git_commit WHEN '' THEN '' ELSE ' (' "
       "|| git_commit || ')' END FROM runs ORDER BY id"},
      {"machines",
       "SELECT DISTINCT json_extract(machine, '$.cpu') FROM runs WHERE "
       "json_extract(machine, '$.cpu') IS NOT NULL ORDER BY id"},
      {"dates",
       "SELECT substr(min(started), 1, 10) || CASE WHEN substr(min(started), 1, 10) = "
       "substr(max(started), 1, 10) THEN '' ELSE ' to ' || substr(max(started), 1, 10) END "
       "FROM runs HAVING count(*) > 0"},
  };
  for (const auto& [name, sql] : kQueries) {
    KVLAB_ASSIGN_OR_RETURN(std::string text, joined(db, sql));
    if (!text.empty()) {
      facts.emplace_back(name, std::move(text));
    }
  }
  return facts;
}

}  // namespace kvlab
