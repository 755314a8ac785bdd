// Where a database's results come from, in a few lines for people.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <utility>
#include <vector>

#include "results/sqlite.h"

namespace kvlab {

// "results": "325 cells of 25 samples, 2 failed"; also models, program, machines and dates.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> run_facts(const Database& db);

}  // namespace kvlab
