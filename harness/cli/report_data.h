// What `report` and `compare` share: opening a database and filtering its cells.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "results/score_data.h"
#include "results/store.h"

namespace kvlab {

struct ReportData {
  std::unique_ptr<ResultStore> store;
  ScoreData scores;
};

// `where`: filters as parse_table_filter() reads them. No cell left is an error.
absl::StatusOr<ReportData> load_report_data(const std::string& database,
                                            const std::vector<std::string>& where,
                                            bool with_extra = false);

}  // namespace kvlab
