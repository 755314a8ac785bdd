#include "methods/lookahead_kv/training/training_log.h"

#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr auto kBusyTimeout = std::chrono::seconds(30);

constexpr char kSchema[] = R"sql(
CREATE TABLE IF NOT EXISTS facts(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS steps(
  step INTEGER PRIMARY KEY, loss REAL NOT NULL, learning_rate REAL NOT NULL,
  gradient_norm REAL NOT NULL, seconds REAL NOT NULL,
  finished TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))) STRICT;
CREATE TABLE IF NOT EXISTS evaluations(step INTEGER PRIMARY KEY, loss REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS recall(
  step INTEGER NOT NULL, budget INTEGER NOT NULL, recall REAL NOT NULL,
  PRIMARY KEY(step, budget)) STRICT;
)sql";

// Rows of `sql` (step, value, series) as Vega-Lite data.
absl::Status add_series(const Database& db, std::string_view sql, Json& values) {
  KVLAB_ASSIGN_OR_RETURN(Statement statement, db.prepare(sql));
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, statement.step());
    if (!row) {
      return absl::OkStatus();
    }
    values.push_back({{"step", statement.int64(0)},
                      {"value", statement.real(1)},
                      {"series", statement.text(2)}});
  }
}

Json line_chart(Json values, const std::string& title) {
  return {{"data", {{"values", std::move(values)}}},
          {"width", 480},
          {"height", 200},
          {"mark", {{"type", "line"}}},
          {"encoding",
           {{"x", {{"field", "step"}, {"type", "quantitative"}, {"title", "step"}}},
            {"y",
             {{"field", "value"},
              {"type", "quantitative"},
              {"title", title},
              {"scale", {{"zero", false}}}}},
            {"color", {{"field", "series"}, {"type", "nominal"}, {"title", nullptr}}}}}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingLog>> TrainingLog::open(const std::filesystem::path& path) {
  KVLAB_ASSIGN_OR_RETURN(std::unique_ptr<Database> db,
                         Database::open(path, Database::Mode::kCreate, kBusyTimeout));
  KVLAB_RETURN_IF_ERROR(db->execute(kSchema));
  return std::unique_ptr<TrainingLog>(new TrainingLog(std::move(db)));
}

absl::Status TrainingLog::write_fact(const std::string& name, const std::string& value) {
  KVLAB_ASSIGN_OR_RETURN(Statement statement,
                         db_->prepare("INSERT OR REPLACE INTO facts VALUES(?1, ?2)"));
  return statement.bind(1, name).bind(2, value).run();
}

absl::Status TrainingLog::write(const TrainingStep& step) {
  KVLAB_ASSIGN_OR_RETURN(
      Statement statement,
      db_->prepare("INSERT OR REPLACE INTO steps(step, loss, learning_rate, gradient_norm, "
                   "seconds) VALUES(?1, ?2, ?3, ?4, ?5)"));
  return statement.bind(1, step.step)
      .bind(2, step.loss)
      .bind(3, step.learning_rate)
      .bind(4, step.gradient_norm)
      .bind(5, step.seconds)
      .run();
}

absl::Status TrainingLog::write(const HeldOutEvaluation& evaluation) {
  KVLAB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*db_));
  KVLAB_ASSIGN_OR_RETURN(Statement loss,
                         db_->prepare("INSERT OR REPLACE INTO evaluations VALUES(?1, ?2)"));
  KVLAB_RETURN_IF_ERROR(loss.bind(1, evaluation.step).bind(2, evaluation.loss).run());
  for (const auto& [budget, recall] : evaluation.recall) {
    KVLAB_ASSIGN_OR_RETURN(Statement statement,
                           db_->prepare("INSERT OR REPLACE INTO recall VALUES(?1, ?2, ?3)"));
    KVLAB_RETURN_IF_ERROR(statement.bind(1, evaluation.step).bind(2, budget).bind(3, recall).run());
  }
  return transaction.commit();
}

absl::StatusOr<Json> training_chart(const std::filesystem::path& path) {
  KVLAB_ASSIGN_OR_RETURN(const std::unique_ptr<Database> db,
                         Database::open(path, Database::Mode::kRead, kBusyTimeout));
  Json loss = Json::array();
  Json recall = Json::array();
  // Blocks of ten steps, so that the training curve can be read.
  KVLAB_RETURN_IF_ERROR(add_series(*db,
                                   "SELECT max(step), avg(loss), 'training' FROM steps GROUP BY "
                                   "(step - 1) / 10 ORDER BY 1",
                                   loss));
  KVLAB_RETURN_IF_ERROR(
      add_series(*db, "SELECT step, loss, 'held out' FROM evaluations ORDER BY 1", loss));
  KVLAB_RETURN_IF_ERROR(
      add_series(*db, "SELECT step, recall, 'recall@' || budget FROM recall ORDER BY 1", recall));
  return Json{{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
              {"vconcat", Json::array({line_chart(loss, "KL divergence"),
                                       line_chart(recall, "share of true attention kept")})}};
}

}  // namespace kvlab
