#include "results/timing_data.h"

#include "harness/base/status.h"

namespace kvlab {

absl::StatusOr<std::vector<CellCost>> load_costs(const Database& db, const ScoreData& data) {
  absl::flat_hash_map<int64_t, size_t> places;
  places.reserve(data.cells.size());
  for (size_t i = 0; i < data.cells.size(); ++i) {
    if (data.cells[i].status == CellStatus::kOk) {
      places.emplace(data.cells[i].row_id, i);
    }
  }
  KVLAB_ASSIGN_OR_RETURN(
      Statement select,
      db.prepare("SELECT id, prefill_s, query_s, score_s, choose_s, draft_s, compact_s, decode_s, "
                 "decode_steps, arms_in_batch, draft_tokens, cache_bytes, kept_mean FROM results "
                 "WHERE status = 'ok'"));
  std::vector<CellCost> costs(data.cells.size());
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      return costs;
    }
    const auto place = places.find(select.int64(0));
    if (place == places.end()) {
      continue;  // filtered out
    }
    costs[place->second] = {.timings = {.prefill_s = select.real(1),
                                        .query_s = select.real(2),
                                        .score_s = select.real(3),
                                        .choose_s = select.real(4),
                                        .draft_s = select.real(5),
                                        .compact_s = select.real(6),
                                        .decode_s = select.real(7),
                                        .decode_steps = select.int64(8),
                                        .arms_in_batch = select.int64(9)},
                            .draft_tokens = select.int64(10),
                            .cache_bytes = select.int64(11),
                            .kept_mean = select.real(12)};
  }
}

}  // namespace kvlab
