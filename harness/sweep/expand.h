// The conveniences of sweep files, turned into plain lists: environment variables, named groups,
// ranges, and the cross product of lists in a method's parameters.
#pragma once

#include <absl/status/statusor.h>

#include <string_view>
#include <vector>

#include "harness/base/json.h"

namespace kvlab {

// Replaces ${NAME} and ${NAME:-default} in every string of `value`. A variable that is not set
// and has no default is an error that names it and its place.
absl::StatusOr<Json> expand_variables(const Json& value, std::string_view origin);

// Replaces "@group" (alone, or as an element of a list) by the group's elements, and ranges
// {"from": a, "to": b, "times": f} or {.., "step": s} by the numbers they stand for.
absl::StatusOr<Json> expand_lists(const Json& value, const Json& groups, std::string_view origin);

// {"window": [8, 32], "pooling": "max"} gives one object for each combination, in order: the
// last key varies fastest.
std::vector<Json> cross_product(const Json& object);

}  // namespace kvlab
