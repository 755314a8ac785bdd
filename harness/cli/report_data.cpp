#include "harness/cli/report_data.h"

#include "benchmarks/registry.h"
#include "harness/base/status.h"
#include "reports/fields.h"

namespace kvlab {

absl::StatusOr<ReportData> load_report_data(const std::string& database,
                                            const std::vector<std::string>& where,
                                            bool with_extra) {
  std::vector<TableFilter> filters;
  for (const std::string& text : where) {
    KVLAB_ASSIGN_OR_RETURN(TableFilter filter, parse_table_filter(text));
    filters.push_back(std::move(filter));
  }
  ReportData data;
  KVLAB_ASSIGN_OR_RETURN(data.store, ResultStore::open(database, ResultStore::Mode::kRead));
  KVLAB_ASSIGN_OR_RETURN(data.scores, load_scores(data.store->database(), with_extra));
  for (const Benchmark* benchmark : benchmarks()) {
    for (std::string& task : benchmark->tasks()) {
      data.scores.task_order.push_back(std::move(task));
    }
  }
  KVLAB_RETURN_IF_ERROR(apply_filters(filters, data.scores));
  if (data.scores.cells.empty()) {
    return not_found("{}: no results{}", database,
                     filters.empty() ? " yet" : " that pass every --where");
  }
  return data;
}

}  // namespace kvlab
