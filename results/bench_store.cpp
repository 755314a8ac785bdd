// Writing measurements.
#include "harness/base/check.h"
#include "harness/base/status.h"
#include "results/store.h"

namespace kvlab {

absl::Status ResultStore::write_bench(const BenchRecord& record) {
  KVLAB_CHECK(run_id_ != 0);
  const BenchMeasurement& m = record.measurement;
  KVLAB_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*db_));
  KVLAB_ASSIGN_OR_RETURN(const int64_t model, setting_id("models", record.model));
  KVLAB_ASSIGN_OR_RETURN(const int64_t method, setting_id("methods", record.method));
  KVLAB_ASSIGN_OR_RETURN(
      Statement * insert,
      db_->cached(
          "INSERT INTO bench (uuid, run_id, model_id, method_id, budget, budget_entries, form, "
          "prompt_tokens, new_tokens, arms, repetition, status, reason, prefill_s, query_s, "
          "draft_s, score_s, choose_s, compact_s, first_token_s, decode_step_s, "
          "prefill_peak_bytes, peak_bytes, steady_bytes, cache_bytes, resident_peak_bytes, "
          "weight_bytes, prefill_flops, prefill_bytes, eviction_flops, eviction_bytes, "
          "decode_flops, decode_bytes, predicted_prefill_s, predicted_eviction_s, "
          "predicted_decode_step_s, predicted_peak_bytes, others_busy, state, created) VALUES "
          "(lower(hex(randomblob(16))),?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
          "?,?,?,?,?,?,?,?,strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))"));
  insert->bind(1, run_id_)
      .bind(2, model)
      .bind(3, method)
      .bind(4, m.budget)
      .bind(5, m.budget_entries)
      .bind(6, m.form)
      .bind(7, m.prompt_tokens)
      .bind(8, m.new_tokens)
      .bind(9, m.arms)
      .bind(10, m.repetition);
  int place = 11;
  const bool ok = m.status == CellStatus::kOk;
  insert->bind(place++, cell_status_text(m.status));
  if (ok) {
    insert->bind_null(place++);
  } else {
    insert->bind(place++, m.reason);
  }
  for (const double value : {m.prefill_s, m.query_s, m.draft_s, m.score_s, m.choose_s, m.compact_s,
                             m.first_token_s, m.decode_step_s}) {
    insert->bind(place++, value);
  }
  for (const int64_t value : {m.prefill_peak_bytes, m.peak_bytes, m.steady_bytes, m.cache_bytes,
                              m.resident_peak_bytes, m.weight_bytes}) {
    insert->bind(place++, value);
  }
  for (const double value :
       {m.prefill_flops, m.prefill_bytes, m.eviction_flops, m.eviction_bytes, m.decode_flops,
        m.decode_bytes, m.predicted_prefill_s, m.predicted_eviction_s, m.predicted_decode_step_s,
        m.predicted_peak_bytes, m.others_busy}) {
    insert->bind(place++, value);
  }
  insert->bind(place++, dump_json(m.state));
  KVLAB_RETURN_IF_ERROR(insert->run());
  return transaction.commit();
}

}  // namespace kvlab
