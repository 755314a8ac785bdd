#include "results/bench_data.h"

#include "harness/base/status.h"

namespace kvlab {

absl::StatusOr<BenchData> load_bench(const Database& db) {
  BenchData data;
  KVLAB_ASSIGN_OR_RETURN(
      const int64_t tables,
      db.query_int("SELECT count(*) FROM sqlite_schema WHERE name = 'measurements'"));
  if (tables == 0) {
    return data;  // written before there was a bench
  }
  KVLAB_ASSIGN_OR_RETURN(Statement runs,
                         db.prepare("SELECT id, started, git_commit, machine FROM runs WHERE id IN "
                                    "(SELECT run_id FROM bench) ORDER BY id"));
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, runs.step());
    if (!row) {
      break;
    }
    BenchRun run{.id = runs.int64(0), .started = runs.text(1), .commit = runs.text(2)};
    KVLAB_ASSIGN_OR_RETURN(run.machine, parse_json(runs.text(3), db.path().string()));
    data.runs.push_back(std::move(run));
  }
  KVLAB_ASSIGN_OR_RETURN(
      Statement select,
      db.prepare("SELECT run_id, model, dtype, device, method, budget, budget_entries, form, "
                 "prompt_tokens, new_tokens, arms, repetition, status, reason, prefill_s, query_s, "
                 "draft_s, score_s, choose_s, compact_s, first_token_s, decode_step_s, "
                 "prefill_peak_bytes, peak_bytes, steady_bytes, cache_bytes, resident_peak_bytes, "
                 "weight_bytes, prefill_flops, prefill_bytes, eviction_flops, eviction_bytes, "
                 "decode_flops, decode_bytes, predicted_prefill_s, predicted_eviction_s, "
                 "predicted_decode_step_s, predicted_peak_bytes, others_busy, state "
                 "FROM measurements"));
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      return data;
    }
    StoredBench stored;
    int column = 0;
    const auto text = [&] { return select.text(column++); };
    const auto whole = [&] { return select.int64(column++); };
    const auto real = [&] { return select.real(column++); };
    stored.run = whole();
    stored.model = text();
    stored.dtype = text();
    stored.device = text();
    stored.method = text();
    BenchMeasurement& m = stored.measurement;
    m.budget = text();
    m.budget_entries = select.optional_int64(column++);
    m.form = text();
    m.prompt_tokens = whole();
    m.new_tokens = whole();
    m.arms = whole();
    m.repetition = whole();
    m.status = parse_cell_status(text());
    m.reason = text();
    for (double* value : {&m.prefill_s, &m.query_s, &m.draft_s, &m.score_s, &m.choose_s,
                          &m.compact_s, &m.first_token_s, &m.decode_step_s}) {
      *value = real();
    }
    for (int64_t* value : {&m.prefill_peak_bytes, &m.peak_bytes, &m.steady_bytes, &m.cache_bytes,
                           &m.resident_peak_bytes, &m.weight_bytes}) {
      *value = whole();
    }
    for (double* value :
         {&m.prefill_flops, &m.prefill_bytes, &m.eviction_flops, &m.eviction_bytes, &m.decode_flops,
          &m.decode_bytes, &m.predicted_prefill_s, &m.predicted_eviction_s,
          &m.predicted_decode_step_s, &m.predicted_peak_bytes, &m.others_busy}) {
      *value = real();
    }
    KVLAB_ASSIGN_OR_RETURN(m.state, parse_json(text(), db.path().string()));
    data.rows.push_back(std::move(stored));
  }
}

}  // namespace kvlab
