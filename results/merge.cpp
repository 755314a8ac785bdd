#include "results/merge.h"

#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"
#include "results/schema.h"
#include "results/store.h"

namespace kvlab {
namespace {

constexpr int kExamples = 5;

// Settings and samples that the target lacks, found by what makes them unique.
constexpr const char* kCopyEntities = R"sql(
INSERT OR IGNORE INTO main.runs (uuid, started, finished, outcome, version, git_commit, build_type,
                                 machine, libraries, config, config_hash, command_line, shard)
  SELECT uuid, started, finished, outcome, version, git_commit, build_type, machine, libraries,
         config, config_hash, command_line, shard FROM src.runs ORDER BY id;
UPDATE main.runs SET finished = s.finished, outcome = s.outcome
  FROM src.runs AS s WHERE s.uuid = runs.uuid AND runs.finished IS NULL;
INSERT OR IGNORE INTO main.models (hash, name, label, json)
  SELECT hash, name, label, json FROM src.models ORDER BY id;
INSERT OR IGNORE INTO main.protocols (hash, name, label, json)
  SELECT hash, name, label, json FROM src.protocols ORDER BY id;
INSERT OR IGNORE INTO main.methods (hash, name, label, json)
  SELECT hash, name, label, json FROM src.methods ORDER BY id;
INSERT OR IGNORE INTO main.samples (benchmark, dataset, sample_key, task, length, sample_index,
                                    text_hash, reference_answers, extra)
  SELECT benchmark, dataset, sample_key, task, length, sample_index, text_hash, reference_answers,
         extra FROM src.samples ORDER BY id;
)sql";

// Every source prompt with its row in the target, by sample, model and protocol.
constexpr const char* kMapPrompts = R"sql(
CREATE TEMP TABLE prompt_map AS
  SELECT q.id AS source_id, t.id AS sample_id, m.id AS model_id, p.id AS protocol_id,
         q.prompt_hash, q.prompt_tokens, q.question_start
  FROM src.prompts AS q
  JOIN src.samples AS s ON s.id = q.sample_id
  JOIN src.models AS sm ON sm.id = q.model_id
  JOIN src.protocols AS sp ON sp.id = q.protocol_id
  JOIN main.samples AS t ON t.dataset = s.dataset AND t.sample_key = s.sample_key
  JOIN main.models AS m ON m.hash = sm.hash
  JOIN main.protocols AS p ON p.hash = sp.hash
  ORDER BY q.id;
)sql";

constexpr const char* kCopyPrompts = R"sql(
INSERT OR IGNORE INTO main.prompts (sample_id, model_id, protocol_id, prompt_hash, prompt_tokens,
                                    question_start)
  SELECT sample_id, model_id, protocol_id, prompt_hash, prompt_tokens, question_start
  FROM temp.prompt_map ORDER BY source_id;
CREATE TEMP TABLE prompt_ids AS
  SELECT a.source_id, q.id AS target_id FROM temp.prompt_map AS a
  JOIN main.prompts AS q ON q.sample_id = a.sample_id AND q.model_id = a.model_id
                        AND q.protocol_id = a.protocol_id;
CREATE UNIQUE INDEX temp.prompt_ids_by_source ON prompt_ids (source_id);
INSERT OR IGNORE INTO main.prompt_texts (prompt_id, text)
  SELECT a.target_id, t.text FROM src.prompt_texts AS t
  JOIN temp.prompt_ids AS a ON a.source_id = t.prompt_id;
)sql";

// What happens to each source cell. Timings, run and time of writing may differ between equals.
constexpr const char* kPlanCells = R"sql(
CREATE TEMP TABLE cell_plan AS
  SELECT s.id AS source_id, s.key, t.id AS target_id,
         CASE WHEN t.id IS NULL THEN 'add'
              WHEN t.status <> 'ok' AND s.status = 'ok' THEN 'replace'
              WHEN t.status <> 'ok' OR s.status <> 'ok' THEN 'same'
              WHEN s.score IS t.score AND s.metric IS t.metric
                   AND s.budget_entries IS t.budget_entries
                   AND s.stop_reason IS t.stop_reason AND s.new_tokens IS t.new_tokens
                   AND s.draft_tokens IS t.draft_tokens AND s.kept_min IS t.kept_min
                   AND s.kept_max IS t.kept_max AND s.kept_total IS t.kept_total
                   AND (SELECT reply FROM src.replies WHERE result_id = s.id)
                       IS (SELECT reply FROM main.replies WHERE result_id = t.id)
                   AND (SELECT token_ids FROM src.replies WHERE result_id = s.id)
                       IS (SELECT token_ids FROM main.replies WHERE result_id = t.id)
              THEN 'same' ELSE 'conflict' END AS action
  FROM src.results AS s LEFT JOIN main.results AS t ON t.key = s.key
  ORDER BY s.id;
)sql";

// A replaced cell is dropped and added anew.
constexpr const char* kCopyCells = R"sql(
DELETE FROM main.results WHERE id IN (SELECT target_id FROM temp.cell_plan
                                      WHERE action = 'replace');
INSERT INTO main.results (key, prompt_id, method_id, budget, budget_entries, question_aware, status,
    reason, score, metric, stop_reason, new_tokens, draft_tokens, kept_min, kept_max, kept_mean,
    kept_total, cache_bytes, prefill_s, query_s, score_s, choose_s, draft_s, compact_s, decode_s,
    decode_steps, arms_in_batch, run_id, created)
  SELECT s.key, a.target_id, d.id, s.budget, s.budget_entries, s.question_aware, s.status, s.reason,
         s.score, s.metric, s.stop_reason, s.new_tokens, s.draft_tokens, s.kept_min, s.kept_max,
         s.kept_mean, s.kept_total, s.cache_bytes, s.prefill_s, s.query_s, s.score_s, s.choose_s,
         s.draft_s, s.compact_s, s.decode_s, s.decode_steps, s.arms_in_batch, r.id, s.created
  FROM temp.cell_plan AS c
  JOIN src.results AS s ON s.id = c.source_id
  JOIN temp.prompt_ids AS a ON a.source_id = s.prompt_id
  JOIN src.methods AS sd ON sd.id = s.method_id
  JOIN main.methods AS d ON d.hash = sd.hash
  JOIN src.runs AS sr ON sr.id = s.run_id
  JOIN main.runs AS r ON r.uuid = sr.uuid
  WHERE c.action IN ('add', 'replace') ORDER BY c.source_id;
INSERT INTO main.replies (result_id, reply, token_ids)
  SELECT t.id, y.reply, y.token_ids FROM temp.cell_plan AS c
  JOIN src.replies AS y ON y.result_id = c.source_id
  JOIN main.results AS t ON t.key = c.key
  WHERE c.action IN ('add', 'replace');
INSERT OR IGNORE INTO main.selections (result_id, kept)
  SELECT t.id, k.kept FROM temp.cell_plan AS c
  JOIN src.selections AS k ON k.result_id = c.source_id
  JOIN main.results AS t ON t.key = c.key AND t.status = 'ok'
  WHERE c.action <> 'conflict';
INSERT OR IGNORE INTO main.conflicts (key, source, row_hash, row)
  SELECT key, source, row_hash, row FROM src.conflicts ORDER BY id;
)sql";

// Measurements, in a source that has them. Found again by their uuid.
constexpr const char* kCopyBench = R"sql(
INSERT OR IGNORE INTO main.bench (uuid, run_id, model_id, method_id, budget, budget_entries, form,
    prompt_tokens, new_tokens, arms, repetition, status, reason, prefill_s, query_s, draft_s,
    score_s, choose_s, compact_s, first_token_s, decode_step_s, prefill_peak_bytes, peak_bytes,
    steady_bytes, cache_bytes, resident_peak_bytes, weight_bytes, prefill_flops, prefill_bytes,
    eviction_flops, eviction_bytes, decode_flops, decode_bytes, predicted_prefill_s,
    predicted_eviction_s, predicted_decode_step_s, predicted_peak_bytes, others_busy, state,
    created)
  SELECT b.uuid, r.id, m.id, d.id, b.budget, b.budget_entries, b.form, b.prompt_tokens,
         b.new_tokens, b.arms, b.repetition, b.status, b.reason, b.prefill_s, b.query_s, b.draft_s,
         b.score_s, b.choose_s, b.compact_s, b.first_token_s, b.decode_step_s,
         b.prefill_peak_bytes, b.peak_bytes, b.steady_bytes, b.cache_bytes, b.resident_peak_bytes,
         b.weight_bytes, b.prefill_flops, b.prefill_bytes, b.eviction_flops, b.eviction_bytes,
         b.decode_flops, b.decode_bytes, b.predicted_prefill_s, b.predicted_eviction_s,
         b.predicted_decode_step_s, b.predicted_peak_bytes, b.others_busy, b.state, b.created
  FROM src.bench AS b
  JOIN src.runs AS sr ON sr.id = b.run_id JOIN main.runs AS r ON r.uuid = sr.uuid
  JOIN src.models AS sm ON sm.id = b.model_id JOIN main.models AS m ON m.hash = sm.hash
  JOIN src.methods AS sd ON sd.id = b.method_id JOIN main.methods AS d ON d.hash = sd.hash
  ORDER BY b.id;
)sql";

constexpr const char* kDropTemporaries = R"sql(
DROP TABLE IF EXISTS temp.prompt_map;
DROP TABLE IF EXISTS temp.prompt_ids;
DROP TABLE IF EXISTS temp.cell_plan;
)sql";

// The other outcome of a cell, whole, for the table `conflicts`.
constexpr const char* kConflictRows = R"sql(
SELECT c.key, json_object('status', s.status, 'score', s.score, 'metric', s.metric,
         'reply', y.reply, 'token_ids', hex(y.token_ids), 'budget_entries', s.budget_entries,
         'stop_reason', s.stop_reason, 'new_tokens', s.new_tokens, 'draft_tokens', s.draft_tokens,
         'kept_min', s.kept_min, 'kept_max', s.kept_max, 'kept_mean', s.kept_mean,
         'kept_total', s.kept_total, 'cache_bytes', s.cache_bytes, 'prefill_s', s.prefill_s,
         'query_s', s.query_s, 'score_s', s.score_s, 'choose_s', s.choose_s, 'draft_s', s.draft_s,
         'compact_s', s.compact_s, 'decode_s', s.decode_s, 'decode_steps', s.decode_steps,
         'arms_in_batch', s.arms_in_batch, 'created', s.created, 'run', r.uuid)
FROM temp.cell_plan AS c
JOIN src.results AS s ON s.id = c.source_id
JOIN src.runs AS r ON r.id = s.run_id
LEFT JOIN src.replies AS y ON y.result_id = s.id
WHERE c.action = 'conflict' ORDER BY s.id
)sql";

// The first texts of a query's first column, as a list, and how many rows it has.
struct Examples {
  std::string text;
  int64_t count = 0;
};
absl::StatusOr<Examples> examples(const Database& db, std::string_view sql) {
  KVLAB_ASSIGN_OR_RETURN(Statement select, db.prepare(sql));
  Examples found;
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      return found;
    }
    if (++found.count <= kExamples) {
      found.text += (found.text.empty() ? "" : ", ") + select.text(0);
    } else if (found.count == kExamples + 1) {
      found.text += ", ...";
    }
  }
}

class Merger final {
 public:
  Merger(Database& db, OnConflict on_conflict) : db_(db), on_conflict_(on_conflict) {}

  // Within a transaction, with the source attached as `src`.
  absl::StatusOr<MergeCounts> merge(const std::filesystem::path& source);

 private:
  absl::Status refuse_changed(const std::filesystem::path& source, std::string_view what,
                              std::string_view sql);
  absl::Status handle_conflicts(const std::filesystem::path& source);
  absl::StatusOr<int64_t> planned(std::string_view action) const {
    return db_.query_int(
        fmt::format("SELECT count(*) FROM temp.cell_plan WHERE action = '{}'", action));
  }

  Database& db_;
  OnConflict on_conflict_;
};

absl::Status Merger::refuse_changed(const std::filesystem::path& source, std::string_view what,
                                    std::string_view sql) {
  KVLAB_ASSIGN_OR_RETURN(const Examples found, examples(db_, sql));
  if (found.count == 0) {
    return absl::OkStatus();
  }
  return failed_precondition(
      "{}: {} sample{} under the same name with {} than in {}: {}; these results are not of the "
      "same data, keep them in separate databases",
      source.string(), found.count, found.count == 1 ? "" : "s", what, db_.path().string(),
      found.text);
}

absl::Status Merger::handle_conflicts(const std::filesystem::path& source) {
  if (on_conflict_ == OnConflict::kRefuse) {
    KVLAB_ASSIGN_OR_RETURN(const Examples found,
                           examples(db_,
                                    "SELECT key FROM temp.cell_plan WHERE action = 'conflict' "
                                    "ORDER BY source_id"));
    if (found.count == 0) {
      return absl::OkStatus();
    }
    return failed_precondition(
        "{}: {} cell{} with another outcome than in {}: keys {}; nothing of it was written. "
        "`--on-conflict record` keeps the first and stores the other in the table conflicts",
        source.string(), found.count, found.count == 1 ? "" : "s", db_.path().string(), found.text);
  }
  KVLAB_ASSIGN_OR_RETURN(Statement select, db_.prepare(kConflictRows));
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      return absl::OkStatus();
    }
    KVLAB_ASSIGN_OR_RETURN(Statement * insert,
                           db_.cached("INSERT OR IGNORE INTO main.conflicts (key, source, "
                                      "row_hash, row) VALUES (?,?,?,?)"));
    const std::string json = select.text(1);
    KVLAB_RETURN_IF_ERROR(insert->bind(1, select.text(0))
                              .bind(2, source.filename().string())
                              .bind(3, sha256_hex(json))
                              .bind(4, json)
                              .run());
  }
}

absl::StatusOr<MergeCounts> Merger::merge(const std::filesystem::path& source) {
  MergeCounts counts{.source = source};
  KVLAB_RETURN_IF_ERROR(db_.execute(kDropTemporaries));
  KVLAB_RETURN_IF_ERROR(refuse_changed(
      source, "another text or other references",
      "SELECT s.sample_key FROM src.samples AS s JOIN main.samples AS t "
      "ON t.dataset = s.dataset AND t.sample_key = s.sample_key "
      "WHERE t.text_hash <> s.text_hash OR t.reference_answers <> s.reference_answers "
      "ORDER BY s.id"));
  KVLAB_RETURN_IF_ERROR(db_.execute(kCopyEntities));
  KVLAB_RETURN_IF_ERROR(db_.execute(kMapPrompts));
  KVLAB_RETURN_IF_ERROR(refuse_changed(
      source, "another rendered prompt",
      "SELECT s.sample_key FROM temp.prompt_map AS a JOIN main.prompts AS q "
      "ON q.sample_id = a.sample_id AND q.model_id = a.model_id AND q.protocol_id = a.protocol_id "
      "JOIN main.samples AS s ON s.id = a.sample_id "
      "WHERE q.prompt_hash <> a.prompt_hash ORDER BY a.source_id"));
  KVLAB_RETURN_IF_ERROR(db_.execute(kCopyPrompts));
  KVLAB_RETURN_IF_ERROR(db_.execute(kPlanCells));
  KVLAB_RETURN_IF_ERROR(handle_conflicts(source));
  KVLAB_RETURN_IF_ERROR(db_.execute(kCopyCells));
  KVLAB_ASSIGN_OR_RETURN(
      const int64_t with_bench,
      db_.query_int("SELECT count(*) FROM src.sqlite_schema WHERE type = 'table' AND name = "
                    "'bench'"));
  if (with_bench > 0) {
    KVLAB_RETURN_IF_ERROR(db_.execute(kCopyBench));
  }
  KVLAB_ASSIGN_OR_RETURN(counts.added, planned("add"));
  KVLAB_ASSIGN_OR_RETURN(counts.same, planned("same"));
  KVLAB_ASSIGN_OR_RETURN(counts.replaced, planned("replace"));
  KVLAB_ASSIGN_OR_RETURN(counts.conflicts, planned("conflict"));
  // A source whose rows point nowhere would lose them silently in the joins above.
  KVLAB_ASSIGN_OR_RETURN(
      const int64_t lost,
      db_.query_int("SELECT count(*) FROM temp.cell_plan AS c WHERE action IN ('add', 'replace') "
                    "AND NOT EXISTS (SELECT 1 FROM main.results AS r WHERE r.key = c.key)"));
  if (lost > 0) {
    return data_loss("{}: {} cells name rows that do not exist; the database is damaged",
                     source.string(), lost);
  }
  KVLAB_RETURN_IF_ERROR(db_.execute(kDropTemporaries));
  return counts;
}

}  // namespace

absl::StatusOr<std::vector<MergeCounts>> merge_databases(
    std::span<const std::filesystem::path> sources, const std::filesystem::path& target,
    OnConflict on_conflict) {
  // Every source is looked at before the target is made.
  for (const std::filesystem::path& source : sources) {
    std::error_code ignored;
    if (std::filesystem::equivalent(source, target, ignored)) {
      return invalid_argument("{}: is both a source and the target", source.string());
    }
    KVLAB_RETURN_IF_ERROR(ResultStore::open(source, ResultStore::Mode::kRead).status());
  }
  KVLAB_ASSIGN_OR_RETURN(auto store, ResultStore::open(target, ResultStore::Mode::kCreate));
  Database& db = store->database();
  std::vector<MergeCounts> all;
  // SQLite attaches and detaches outside transactions only, and ten databases at most.
  for (const std::filesystem::path& source : sources) {
    KVLAB_RETURN_IF_ERROR(db.attach(source, "src"));
    const auto counts = [&]() -> absl::StatusOr<MergeCounts> {
      KVLAB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(db));
      KVLAB_ASSIGN_OR_RETURN(MergeCounts merged, Merger(db, on_conflict).merge(source));
      KVLAB_RETURN_IF_ERROR(transaction.commit());
      return merged;
    }();
    KVLAB_RETURN_IF_ERROR(db.execute("DETACH src"));
    KVLAB_RETURN_IF_ERROR(counts.status());
    all.push_back(*counts);
  }
  return all;
}

}  // namespace kvlab
