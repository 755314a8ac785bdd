#include "results/store.h"

#include <sys/random.h>

#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

#include "harness/base/check.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"
#include "results/packing.h"
#include "results/schema.h"

namespace kvlab {
namespace {

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     millis);
}

std::string random_uuid() {
  std::array<unsigned char, 16> bytes{};
  KVLAB_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  std::string uuid;
  for (const unsigned char byte : bytes) {
    uuid += fmt::format("{:02x}", byte);
  }
  return uuid;
}

Database::Mode database_mode(ResultStore::Mode mode) {
  switch (mode) {
    case ResultStore::Mode::kCreate:
      return Database::Mode::kCreate;
    case ResultStore::Mode::kWrite:
      return Database::Mode::kWrite;
    case ResultStore::Mode::kRead:
      return Database::Mode::kRead;
  }
  KVLAB_CHECK(false);
}

// Two processes that make a database together: SQLite does not wait for the other's change to WAL
// mode, whatever the busy timeout, since both might hold what the other needs.
absl::Status migrate_patiently(Database& db, std::chrono::milliseconds busy_timeout) {
  constexpr std::chrono::milliseconds kPause{20};
  const auto deadline = std::chrono::steady_clock::now() + busy_timeout;
  absl::Status status = migrate(db);
  while (absl::IsUnavailable(status) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPause);
    status = migrate(db);
  }
  return status;
}

absl::Status changed(const ResultStore& store, const SampleRecord& sample, std::string_view what) {
  return failed_precondition(
      "{}: sample {} of {} is stored with {}; the data or the program changed under the same name: "
      "write to another database",
      store.path().string(), sample.sample_key, sample.dataset, what);
}

}  // namespace

ResultStore::ResultStore(std::filesystem::path path, std::unique_ptr<Database> db)
    : path_(std::move(path)), db_(std::move(db)) {}

absl::StatusOr<std::unique_ptr<ResultStore>> ResultStore::open(const std::filesystem::path& path,
                                                               Mode mode,
                                                               const StoreOptions& options) {
  KVLAB_ASSIGN_OR_RETURN(auto db, Database::open(path, database_mode(mode), options.busy_timeout));
  KVLAB_RETURN_IF_ERROR(mode == Mode::kRead ? check_schema(*db)
                                            : migrate_patiently(*db, options.busy_timeout));
  return std::unique_ptr<ResultStore>(new ResultStore(path, std::move(db)));
}

absl::StatusOr<int64_t> ResultStore::begin_run(const RunInfo& info) {
  KVLAB_ASSIGN_OR_RETURN(Statement * insert,
                         db_->cached("INSERT INTO runs (uuid, started, version, git_commit, "
                                     "build_type, machine, libraries, config, config_hash, "
                                     "command_line, shard) VALUES (?,?,?,?,?,?,?,?,?,?,?)"));
  const std::string config = dump_json(info.config);
  insert->bind(1, random_uuid())
      .bind(2, utc_now())
      .bind(3, info.version)
      .bind(4, info.git_commit)
      .bind(5, info.build_type)
      .bind(6, dump_json(info.machine))
      .bind(7, dump_json(info.libraries))
      .bind(8, config)
      .bind(9, sha256_hex(config))
      .bind(10, info.command_line)
      .bind(11, info.shard);
  KVLAB_RETURN_IF_ERROR(insert->run());
  run_id_ = db_->last_insert_id();
  return run_id_;
}

absl::Status ResultStore::finish_run(std::string_view outcome) {
  KVLAB_CHECK(run_id_ != 0);
  KVLAB_ASSIGN_OR_RETURN(Statement * update,
                         db_->cached("UPDATE runs SET finished = ?, outcome = ? WHERE id = ?"));
  return update->bind(1, utc_now()).bind(2, outcome).bind(3, run_id_).run();
}

absl::StatusOr<absl::flat_hash_set<std::string>> ResultStore::stored_keys(bool retry_failed) const {
  KVLAB_ASSIGN_OR_RETURN(
      Statement select,
      db_->prepare(retry_failed ? "SELECT key FROM results WHERE status <> 'failed'"
                                : "SELECT key FROM results"));
  absl::flat_hash_set<std::string> keys;
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      return keys;
    }
    keys.insert(select.text(0));
  }
}

absl::StatusOr<bool> ResultStore::contains(const std::string& key, bool retry_failed) const {
  KVLAB_ASSIGN_OR_RETURN(Statement select,
                         db_->prepare("SELECT status FROM results WHERE key = ?"));
  select.bind(1, key);
  KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
  return row && !(retry_failed && select.text_view(0) == "failed");
}

absl::StatusOr<int64_t> ResultStore::setting_id(const std::string& table, const Setting& setting) {
  KVLAB_ASSIGN_OR_RETURN(Statement * find,
                         db_->cached(fmt::format("SELECT id FROM {} WHERE hash = ?", table)));
  find->bind(1, setting.hash);
  KVLAB_ASSIGN_OR_RETURN(const bool found, find->step());
  if (found) {
    const int64_t id = find->int64(0);
    find->reset();
    return id;
  }
  KVLAB_ASSIGN_OR_RETURN(
      Statement * insert,
      db_->cached(fmt::format("INSERT INTO {} (hash, name, label, json) VALUES (?,?,?,?)", table)));
  KVLAB_RETURN_IF_ERROR(insert->bind(1, setting.hash)
                            .bind(2, setting.name)
                            .bind(3, setting.label.empty() ? setting.name : setting.label)
                            .bind(4, dump_json(setting.json))
                            .run());
  return db_->last_insert_id();
}

absl::StatusOr<int64_t> ResultStore::sample_id(const SampleRecord& sample) {
  const std::string references = dump_json(Json(sample.references));
  KVLAB_ASSIGN_OR_RETURN(Statement * find,
                         db_->cached("SELECT id, text_hash, reference_answers FROM samples "
                                     "WHERE dataset = ? AND sample_key = ?"));
  find->bind(1, sample.dataset).bind(2, sample.sample_key);
  KVLAB_ASSIGN_OR_RETURN(const bool found, find->step());
  if (found) {
    const int64_t id = find->int64(0);
    const bool same_text = find->text_view(1) == sample.text_hash;
    const bool same_references = find->text_view(2) == references;
    find->reset();
    if (!same_text || !same_references) {
      return changed(*this, sample, same_text ? "other references" : "another text");
    }
    return id;
  }
  KVLAB_ASSIGN_OR_RETURN(Statement * insert,
                         db_->cached("INSERT INTO samples (benchmark, dataset, sample_key, task, "
                                     "length, sample_index, text_hash, reference_answers, extra) "
                                     "VALUES (?,?,?,?,?,?,?,?,?)"));
  KVLAB_RETURN_IF_ERROR(insert->bind(1, sample.benchmark)
                            .bind(2, sample.dataset)
                            .bind(3, sample.sample_key)
                            .bind(4, sample.task)
                            .bind(5, sample.length)
                            .bind(6, sample.index)
                            .bind(7, sample.text_hash)
                            .bind(8, references)
                            .bind(9, dump_json(sample.extra))
                            .run());
  return db_->last_insert_id();
}

absl::StatusOr<int64_t> ResultStore::prompt_id(const SampleRecord& sample) {
  KVLAB_ASSIGN_OR_RETURN(const int64_t sample_row, sample_id(sample));
  KVLAB_ASSIGN_OR_RETURN(const int64_t model, setting_id("models", sample.model));
  KVLAB_ASSIGN_OR_RETURN(const int64_t protocol, setting_id("protocols", sample.protocol));
  KVLAB_ASSIGN_OR_RETURN(Statement * find,
                         db_->cached("SELECT id, prompt_hash FROM prompts WHERE sample_id = ? AND "
                                     "model_id = ? AND protocol_id = ?"));
  find->bind(1, sample_row).bind(2, model).bind(3, protocol);
  KVLAB_ASSIGN_OR_RETURN(const bool found, find->step());
  int64_t id = 0;
  if (found) {
    id = find->int64(0);
    const bool same = find->text_view(1) == sample.prompt_hash;
    find->reset();
    if (!same) {
      return changed(*this, sample, "another rendered prompt");
    }
  } else {
    KVLAB_ASSIGN_OR_RETURN(Statement * insert,
                           db_->cached("INSERT INTO prompts (sample_id, model_id, protocol_id, "
                                       "prompt_hash, prompt_tokens, question_start) "
                                       "VALUES (?,?,?,?,?,?)"));
    KVLAB_RETURN_IF_ERROR(insert->bind(1, sample_row)
                              .bind(2, model)
                              .bind(3, protocol)
                              .bind(4, sample.prompt_hash)
                              .bind(5, sample.prompt_tokens)
                              .bind(6, sample.question_start)
                              .run());
    id = db_->last_insert_id();
  }
  if (sample.rendered_text) {
    KVLAB_ASSIGN_OR_RETURN(Statement * text,
                           db_->cached("INSERT INTO prompt_texts (prompt_id, text) VALUES (?,?) "
                                       "ON CONFLICT DO NOTHING"));
    KVLAB_RETURN_IF_ERROR(text->bind(1, id).bind(2, *sample.rendered_text).run());
  }
  return id;
}

absl::StatusOr<bool> ResultStore::write_cell(int64_t prompt, const SampleRecord& sample,
                                             const ResultRecord& result) {
  const bool ok = result.status == CellStatus::kOk;
  if (ok && !std::isfinite(result.score)) {
    return invalid_argument("sample {}, {} at {}: the score is not a finite number",
                            sample.sample_key, result.method.name, result.budget);
  }
  KVLAB_ASSIGN_OR_RETURN(const int64_t method, setting_id("methods", result.method));
  KVLAB_ASSIGN_OR_RETURN(
      Statement * insert,
      db_->cached(
          "INSERT INTO results (key, prompt_id, method_id, budget, budget_entries, question_aware, "
          "status, reason, score, metric, stop_reason, new_tokens, draft_tokens, kept_min, "
          "kept_max, kept_mean, kept_total, cache_bytes, prefill_s, query_s, score_s, choose_s, "
          "draft_s, compact_s, decode_s, decode_steps, arms_in_batch, run_id, created) "
          "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
          "ON CONFLICT (key) DO UPDATE SET status = excluded.status, reason = excluded.reason, "
          "budget_entries = excluded.budget_entries, score = excluded.score, "
          "metric = excluded.metric, stop_reason = excluded.stop_reason, "
          "new_tokens = excluded.new_tokens, draft_tokens = excluded.draft_tokens, "
          "kept_min = excluded.kept_min, kept_max = excluded.kept_max, "
          "kept_mean = excluded.kept_mean, kept_total = excluded.kept_total, "
          "cache_bytes = excluded.cache_bytes, prefill_s = excluded.prefill_s, "
          "query_s = excluded.query_s, score_s = excluded.score_s, choose_s = excluded.choose_s, "
          "draft_s = excluded.draft_s, compact_s = excluded.compact_s, "
          "decode_s = excluded.decode_s, decode_steps = excluded.decode_steps, "
          "arms_in_batch = excluded.arms_in_batch, run_id = excluded.run_id, "
          "created = excluded.created WHERE results.status <> 'ok' "
          "RETURNING id"));
  insert->bind(1, cell_key(sample, result))
      .bind(2, prompt)
      .bind(3, method)
      .bind(4, result.budget)
      .bind(5, result.budget_entries)
      .bind(6, result.question_aware)
      .bind(7, cell_status_text(result.status));
  if (ok) {
    const Timings& t = result.timings;
    insert->bind_null(8)
        .bind(9, result.score)
        .bind(10, result.metric)
        .bind(11, result.stop_reason)
        .bind(12, result.new_tokens)
        .bind(13, result.draft_tokens)
        .bind(14, result.kept.min)
        .bind(15, result.kept.max)
        .bind(16, result.kept.mean)
        .bind(17, result.kept.total)
        .bind(18, result.cache_bytes)
        .bind(19, t.prefill_s)
        .bind(20, t.query_s)
        .bind(21, t.score_s)
        .bind(22, t.choose_s)
        .bind(23, t.draft_s)
        .bind(24, t.compact_s)
        .bind(25, t.decode_s)
        .bind(26, t.decode_steps)
        .bind(27, t.arms_in_batch);
  } else {
    insert->bind(8, result.reason.empty() ? std::string("no reason given") : result.reason);
  }
  insert->bind(28, run_id_).bind(29, utc_now());
  KVLAB_ASSIGN_OR_RETURN(const bool written, insert->step());
  const int64_t id = written ? insert->int64(0) : 0;
  insert->reset();
  if (written && ok) {
    KVLAB_RETURN_IF_ERROR(write_reply(id, result));
  }
  return written;
}

absl::Status ResultStore::write_reply(int64_t result_id, const ResultRecord& result) {
  KVLAB_ASSIGN_OR_RETURN(
      Statement * reply,
      db_->cached("INSERT INTO replies (result_id, reply, token_ids) VALUES (?,?,?)"));
  KVLAB_RETURN_IF_ERROR(reply->bind(1, result_id)
                            .bind(2, result.reply)
                            .bind_blob(3, pack_token_ids(result.reply_token_ids))
                            .run());
  if (!result.selection) {
    return absl::OkStatus();
  }
  KVLAB_ASSIGN_OR_RETURN(Statement * kept,
                         db_->cached("INSERT INTO selections (result_id, kept) VALUES (?,?)"));
  return kept->bind(1, result_id).bind_blob(2, pack_selection(*result.selection)).run();
}

absl::StatusOr<int64_t> ResultStore::write_sample(const SampleRecord& sample,
                                                  std::span<const ResultRecord> results) {
  KVLAB_CHECK(run_id_ != 0);
  KVLAB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*db_));
  KVLAB_ASSIGN_OR_RETURN(const int64_t prompt, prompt_id(sample));
  int64_t written = 0;
  for (const ResultRecord& result : results) {
    KVLAB_ASSIGN_OR_RETURN(const bool stored, write_cell(prompt, sample, result));
    written += stored ? 1 : 0;
  }
  KVLAB_RETURN_IF_ERROR(transaction.commit());
  return written;
}

}  // namespace kvlab
