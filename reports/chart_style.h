// How every chart looks: one colour a method in all of them, axes, titles.
#pragma once

#include <string>
#include <vector>

#include "harness/base/json.h"
#include "reports/fields.h"

namespace kvlab {

// A specification with its data inside and the common style.
Json base_spec(const std::string& title, Json values);

// What a table key says, on one line of plain text: "ruler, SmolLM2-135M-Instruct, length 2048".
std::string chart_title(const FieldIndex& index, const FieldCodes& key);

// A method's name as charts write it.
std::string chart_method(const FieldIndex& index, int32_t method);

// Colour by the field "method": the same colour for a method in every chart of a database, grey for
// the full cache. `methods`: the codes that the chart shows, in the order of its legend.
Json method_colour(const ScoreData& data, const FieldIndex& index,
                   const std::vector<int32_t>& methods);

// The first `limit` distinct values, as they are ordered, and whether there were more.
struct Shown {
  std::vector<int32_t> codes;
  bool cut = false;
};
Shown first_codes(const std::vector<int32_t>& ordered, size_t limit);

}  // namespace kvlab
