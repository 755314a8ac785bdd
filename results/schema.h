// The tables and views of a results database, as a list of migrations. docs/results.md describes
// them for people who query the file.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <span>

#include "results/sqlite.h"

namespace kvlab {

struct Migration {
  int version;      // user_version after it
  const char* sql;  // from the version before
};

// Ascending versions from 1, no gaps.
std::span<const Migration> migrations();

// Creates or upgrades in one transaction, and switches the file to WAL. Errors: the database is
// not one of kvlab's, or a newer kvlab wrote it; it is then unchanged.
absl::Status migrate(Database& db, std::span<const Migration> steps = migrations());

// For reading: a schema that is new enough to hold what every reader asks for. Tables added later
// may be missing.
absl::Status check_schema(const Database& db, std::span<const Migration> steps = migrations());

}  // namespace kvlab
