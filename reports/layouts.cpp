#include "reports/layouts.h"

#include <algorithm>

#include "harness/base/status.h"
#include "reports/efficiency.h"
#include "reports/escape.h"

namespace kvlab {
namespace {

constexpr std::string_view kLayouts[] = {"ruler-by-length", "longbench-by-budget", "efficiency",
                                         "growth"};
constexpr size_t kMaxChartsOfAKind = 12;

absl::Status keep_benchmarks(ScoreData& data, const std::string& prefix) {
  std::erase_if(data.cells, [&](const ScoreData::Cell& cell) {
    const auto& prompt = data.prompts[static_cast<size_t>(cell.prompt)];
    return !data.samples[static_cast<size_t>(prompt.sample)].benchmark.starts_with(prefix);
  });
  return data.cells.empty() ? not_found("no results of {} in the database", prefix)
                            : absl::OkStatus();
}

void add_kind(std::vector<Chart> charts, ChartSet& set) {
  if (charts.size() > kMaxChartsOfAKind) {
    set.notes.push_back(fmt::format("{}: the first {} of {} charts; --where chooses others",
                                    charts.front().kind, kMaxChartsOfAKind, charts.size()));
    charts.resize(kMaxChartsOfAKind);
  }
  std::move(charts.begin(), charts.end(), std::back_inserter(set.charts));
}

}  // namespace

absl::StatusOr<std::vector<Table>> layout_tables(std::string_view layout, const Database& db,
                                                 ScoreData data, const ScoreTableOptions& options) {
  ScoreTableOptions chosen = options;
  if (layout == "efficiency") {
    KVLAB_ASSIGN_OR_RETURN(const std::vector<CellCost> costs, load_costs(db, data));
    return efficiency_tables(data, costs);
  }
  if (layout == "ruler-by-length") {
    KVLAB_RETURN_IF_ERROR(keep_benchmarks(data, "ruler"));
    chosen.rows = {Field::kMethod};
    chosen.columns = Field::kLength;
  } else if (layout == "longbench-by-budget") {
    KVLAB_RETURN_IF_ERROR(keep_benchmarks(data, "longbench"));
    chosen.rows = {Field::kMethod};
    chosen.columns = Field::kBudget;
  } else if (!layout.empty()) {
    return invalid_argument("unknown layout \"{}\"; layouts: {}", plain_line(layout),
                            fmt::join(kLayouts, ", "));
  }
  return score_tables(data, chosen);
}

absl::StatusOr<ChartSet> all_charts(const Database& db, const ScoreData& data,
                                    const std::string& sample) {
  ChartSet set;
  add_kind(score_by_budget_charts(data), set);
  add_kind(score_by_length_charts(data), set);
  add_kind(needle_charts(data), set);
  KVLAB_ASSIGN_OR_RETURN(std::vector<Chart> retained, retained_charts(db, data, sample));
  add_kind(std::move(retained), set);
  KVLAB_ASSIGN_OR_RETURN(const std::vector<CellCost> costs, load_costs(db, data));
  add_kind(cost_charts(data, costs), set);
  return set;
}

}  // namespace kvlab
