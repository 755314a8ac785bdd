// What a JSON Schema asks for at the places where a value does not fit it, in words for people.
#pragma once

#include <string>
#include <vector>

#include "harness/base/json.h"

namespace kvlab {

// Keys and indices that lead from the whole value to a place in it.
using JsonPlace = std::vector<std::string>;

// One line for each of the places (where a validator found fault, with what lies around it): an
// unknown or missing key with the keys there are, or the value and what is allowed in its stead.
// Knows the keywords of kvlab's own schemas; empty where these find no fault.
std::vector<std::string> schema_complaints(const Json& value, const Json& schema,
                                           const std::vector<JsonPlace>& places);

}  // namespace kvlab
