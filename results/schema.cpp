#include "results/schema.h"

#include "harness/base/status.h"

namespace kvlab {
namespace {

// "kvlb": marks the file as kvlab's for `file` and for us.
constexpr int64_t kApplicationId = 0x6b766c62;

constexpr const char* kVersion1 = R"sql(
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  started TEXT NOT NULL,
  finished TEXT,
  outcome TEXT,
  version TEXT NOT NULL,
  git_commit TEXT NOT NULL,
  build_type TEXT NOT NULL,
  machine TEXT NOT NULL CHECK (json_valid(machine)),
  libraries TEXT NOT NULL CHECK (json_valid(libraries)),
  config TEXT NOT NULL CHECK (json_valid(config)),
  config_hash TEXT NOT NULL,
  command_line TEXT NOT NULL,
  shard TEXT NOT NULL
) STRICT;

CREATE TABLE models (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  label TEXT NOT NULL,
  json TEXT NOT NULL CHECK (json_valid(json))
) STRICT;
CREATE TABLE protocols (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  label TEXT NOT NULL,
  json TEXT NOT NULL CHECK (json_valid(json))
) STRICT;
CREATE TABLE methods (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  label TEXT NOT NULL,
  json TEXT NOT NULL CHECK (json_valid(json))
) STRICT;

CREATE TABLE samples (
  id INTEGER PRIMARY KEY,
  benchmark TEXT NOT NULL,
  dataset TEXT NOT NULL,
  sample_key TEXT NOT NULL,
  task TEXT NOT NULL,
  length INTEGER NOT NULL,
  sample_index INTEGER NOT NULL,
  text_hash TEXT NOT NULL,
  reference_answers TEXT NOT NULL CHECK (json_valid(reference_answers)),
  extra TEXT NOT NULL CHECK (json_valid(extra)),
  UNIQUE (dataset, sample_key)
) STRICT;

CREATE TABLE prompts (
  id INTEGER PRIMARY KEY,
  sample_id INTEGER NOT NULL REFERENCES samples (id),
  model_id INTEGER NOT NULL REFERENCES models (id),
  protocol_id INTEGER NOT NULL REFERENCES protocols (id),
  prompt_hash TEXT NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  question_start INTEGER,
  UNIQUE (sample_id, model_id, protocol_id)
) STRICT;
CREATE TABLE prompt_texts (
  prompt_id INTEGER PRIMARY KEY REFERENCES prompts (id),
  text TEXT NOT NULL
) STRICT;

CREATE TABLE results (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  prompt_id INTEGER NOT NULL REFERENCES prompts (id),
  method_id INTEGER NOT NULL REFERENCES methods (id),
  budget TEXT NOT NULL,
  budget_entries INTEGER,
  question_aware INTEGER NOT NULL CHECK (question_aware IN (0, 1)),
  status TEXT NOT NULL CHECK (status IN ('ok', 'failed', 'skipped')),
  reason TEXT,
  score REAL,
  metric TEXT,
  stop_reason TEXT,
  new_tokens INTEGER,
  draft_tokens INTEGER,
  kept_min INTEGER,
  kept_max INTEGER,
  kept_mean REAL,
  kept_total INTEGER,
  cache_bytes INTEGER,
  prefill_s REAL,
  query_s REAL,
  score_s REAL,
  choose_s REAL,
  draft_s REAL,
  compact_s REAL,
  decode_s REAL,
  decode_steps INTEGER,
  arms_in_batch INTEGER,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  created TEXT NOT NULL,
  CHECK ((status = 'ok') = (score IS NOT NULL)),
  CHECK ((status = 'ok') = (reason IS NULL))
) STRICT;
-- Everything a table of scores reads, so that reports never touch the wide rows.
CREATE INDEX results_for_reports ON results
  (prompt_id, method_id, budget, question_aware, status, score, metric);
CREATE INDEX results_not_ok ON results (status) WHERE status <> 'ok';

-- The bulky parts, apart so that scans of `results` stay fast. token_ids and kept are packed by
-- results/packing.h.
CREATE TABLE replies (
  result_id INTEGER PRIMARY KEY REFERENCES results (id) ON DELETE CASCADE,
  reply TEXT NOT NULL,
  token_ids BLOB NOT NULL
) STRICT;
CREATE TABLE selections (
  result_id INTEGER PRIMARY KEY REFERENCES results (id) ON DELETE CASCADE,
  kept BLOB NOT NULL
) STRICT;

-- Cells that `kvlab merge --on-conflict record` found with another outcome than the stored one.
CREATE TABLE conflicts (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  source TEXT NOT NULL,
  row_hash TEXT NOT NULL,
  row TEXT NOT NULL CHECK (json_valid(row)),
  UNIQUE (key, row_hash)
) STRICT;

CREATE VIEW cells AS
  SELECT r.id AS result_id, r.key, m.label AS model, json_extract(m.json, '$.dtype') AS dtype,
         s.benchmark, s.dataset, s.task, s.length, p.label AS protocol,
         d.name AS method, d.label, d.json AS params, r.budget, r.budget_entries,
         r.question_aware, s.sample_key AS sample, s.sample_index, r.status, r.reason,
         r.score, r.metric, r.stop_reason, q.prompt_tokens, r.new_tokens, r.draft_tokens,
         r.kept_min, r.kept_max, r.kept_mean, r.kept_total, r.cache_bytes,
         r.prefill_s, r.query_s, r.score_s, r.choose_s, r.draft_s, r.compact_s, r.decode_s,
         r.decode_steps, r.arms_in_batch, r.run_id, r.created,
         m.hash AS model_hash, p.hash AS protocol_hash, d.hash AS method_hash
  FROM results AS r
  JOIN prompts AS q ON q.id = r.prompt_id
  JOIN samples AS s ON s.id = q.sample_id
  JOIN models AS m ON m.id = q.model_id
  JOIN protocols AS p ON p.id = q.protocol_id
  JOIN methods AS d ON d.id = r.method_id;

CREATE VIEW scores AS
  SELECT c.key, c.model, c.dtype, c.benchmark, c.dataset, c.task, c.length, c.protocol, c.method,
         c.label, c.params, c.budget, c.budget_entries, c.question_aware, c.sample,
         c.sample_index, c.score, c.metric, y.reply, c.stop_reason, c.prompt_tokens,
         c.new_tokens, c.draft_tokens, c.kept_min, c.kept_max, c.kept_mean, c.kept_total,
         c.cache_bytes, c.run_id, c.created
  FROM cells AS c LEFT JOIN replies AS y ON y.result_id = c.result_id
  WHERE c.status = 'ok';

CREATE VIEW timings AS
  SELECT key, model, dtype, benchmark, task, length, method, label, budget, question_aware, sample,
         prompt_tokens, new_tokens, draft_tokens, prefill_s, query_s, score_s, choose_s, draft_s,
         compact_s, query_s + score_s + choose_s + draft_s + compact_s AS eviction_s,
         decode_s, decode_steps, arms_in_batch,
         CASE WHEN decode_steps > 0 THEN decode_s / decode_steps END AS decode_step_s,
         cache_bytes, run_id
  FROM cells WHERE status = 'ok';

CREATE VIEW failures AS
  SELECT key, model, benchmark, dataset, task, length, protocol, method, label, budget,
         question_aware, sample, status, reason, run_id, created
  FROM cells WHERE status <> 'ok';
)sql";

// Measurements of `kvlab bench`.
constexpr const char* kVersion2 = R"sql(
CREATE TABLE bench (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  model_id INTEGER NOT NULL REFERENCES models (id),
  method_id INTEGER NOT NULL REFERENCES methods (id),
  budget TEXT NOT NULL,
  budget_entries INTEGER,
  form TEXT NOT NULL CHECK (form IN ('by_layers', 'shared')),
  prompt_tokens INTEGER NOT NULL,
  new_tokens INTEGER NOT NULL,
  arms INTEGER NOT NULL,
  repetition INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('ok', 'failed', 'skipped')),
  reason TEXT,
  prefill_s REAL,
  query_s REAL,
  draft_s REAL,
  score_s REAL,
  choose_s REAL,
  compact_s REAL,
  first_token_s REAL,
  decode_step_s REAL,
  prefill_peak_bytes INTEGER,
  peak_bytes INTEGER,
  steady_bytes INTEGER,
  cache_bytes INTEGER,
  resident_peak_bytes INTEGER,
  weight_bytes INTEGER,
  prefill_flops REAL,
  prefill_bytes REAL,
  eviction_flops REAL,
  eviction_bytes REAL,
  decode_flops REAL,
  decode_bytes REAL,
  predicted_prefill_s REAL,
  predicted_eviction_s REAL,
  predicted_decode_step_s REAL,
  predicted_peak_bytes REAL,
  others_busy REAL,
  state TEXT NOT NULL CHECK (json_valid(state)),
  created TEXT NOT NULL,
  CHECK ((status = 'ok') = (reason IS NULL))
) STRICT;
CREATE INDEX bench_by_run ON bench (run_id);

CREATE VIEW measurements AS
  SELECT b.run_id, m.label AS model, json_extract(m.json, '$.dtype') AS dtype,
         json_extract(m.json, '$.device') AS device, d.label AS method, d.json AS params, b.budget,
         b.budget_entries, b.form, b.prompt_tokens, b.new_tokens, b.arms, b.repetition, b.status,
         b.reason, b.prefill_s, b.query_s, b.draft_s, b.score_s, b.choose_s, b.compact_s,
         b.first_token_s, b.decode_step_s, b.prefill_peak_bytes, b.peak_bytes, b.steady_bytes,
         b.cache_bytes, b.resident_peak_bytes, b.weight_bytes, b.prefill_flops, b.prefill_bytes,
         b.eviction_flops, b.eviction_bytes, b.decode_flops, b.decode_bytes, b.predicted_prefill_s,
         b.predicted_eviction_s, b.predicted_decode_step_s, b.predicted_peak_bytes, b.others_busy,
         b.state, b.created, r.machine, r.git_commit
  FROM bench AS b
  JOIN models AS m ON m.id = b.model_id
  JOIN methods AS d ON d.id = b.method_id
  JOIN runs AS r ON r.id = b.run_id;
)sql";

constexpr Migration kMigrations[] = {{1, kVersion1}, {2, kVersion2}};
// What reading and merging need is there since this version.
constexpr int kOldestReadable = 1;

struct Found {
  int64_t version;
  bool empty;  // no table yet
};

absl::StatusOr<Found> inspect(const Database& db, std::span<const Migration> steps) {
  // One statement, so that another process's upgrade is seen whole or not at all.
  KVLAB_ASSIGN_OR_RETURN(Statement select,
                         db.prepare("SELECT (SELECT count(*) FROM sqlite_schema),"
                                    " (SELECT application_id FROM pragma_application_id),"
                                    " (SELECT user_version FROM pragma_user_version)"));
  KVLAB_RETURN_IF_ERROR(select.step().status());
  const int64_t tables = select.int64(0);
  const int64_t id = select.int64(1);
  const int64_t version = select.int64(2);
  const bool empty = tables == 0 && version == 0 && id == 0;
  if (!empty && (id != kApplicationId || version < 1)) {
    return invalid_argument("{}: an SQLite database, but not one of kvlab's; name another file",
                            db.path().string());
  }
  if (version > steps.back().version) {
    return failed_precondition(
        "{}: written by a newer kvlab (schema {}; this program knows up to {}); update kvlab",
        db.path().string(), version, steps.back().version);
  }
  return Found{version, empty};
}

}  // namespace

std::span<const Migration> migrations() { return kMigrations; }

absl::Status migrate(Database& db, std::span<const Migration> steps) {
  KVLAB_RETURN_IF_ERROR(inspect(db, steps).status());
  // The mode is part of the file and cannot change inside a transaction. NORMAL is safe with WAL:
  // a power cut may lose the last samples, never the file.
  KVLAB_RETURN_IF_ERROR(db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"));
  KVLAB_ASSIGN_OR_RETURN(Found found, inspect(db, steps));
  if (found.version == steps.back().version) {
    return absl::OkStatus();
  }
  KVLAB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(db));
  KVLAB_ASSIGN_OR_RETURN(found, inspect(db, steps));  // another process may have been faster
  for (const Migration& step : steps) {
    if (step.version > found.version) {
      KVLAB_RETURN_IF_ERROR(
          with_context(db.execute(step.sql), fmt::format("upgrade to schema {}", step.version)));
      KVLAB_RETURN_IF_ERROR(db.execute(fmt::format("PRAGMA user_version = {}", step.version)));
    }
  }
  KVLAB_RETURN_IF_ERROR(db.execute(fmt::format("PRAGMA application_id = {}", kApplicationId)));
  return transaction.commit();
}

absl::Status check_schema(const Database& db, std::span<const Migration> steps) {
  KVLAB_ASSIGN_OR_RETURN(const Found found, inspect(db, steps));
  if (found.empty) {
    return failed_precondition("{}: an empty database; nothing has been stored yet",
                               db.path().string());
  }
  if (found.version < kOldestReadable) {
    return failed_precondition(
        "{}: written by an older kvlab (schema {}, now {}); an older program must read it",
        db.path().string(), found.version, steps.back().version);
  }
  return absl::OkStatus();
}

}  // namespace kvlab
