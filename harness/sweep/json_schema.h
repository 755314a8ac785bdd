// JSON Schema (draft 7) checks through valijson, kept in one translation unit: its
// headers take long to compile.
#pragma once

#include <absl/status/status.h>

#include <string_view>

#include "harness/base/json.h"

namespace kvlab {

// Checks `value` against `schema`. The error names `origin`, every place at fault and what is
// allowed there (schema_message.h).
absl::Status check_schema(const Json& value, const Json& schema, std::string_view origin);

// The schema of sweep files (harness/sweep/sweep.schema.json, built in).
const Json& sweep_schema();

}  // namespace kvlab
