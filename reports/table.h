// A table as every writer sees it: what is known about it, its rows and columns, and notes below.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvlab {

// The text of a cell without a value.
constexpr const char* kMissing = "–";

struct TableCell {
  std::string text;             // as people read it: "61.0 ± 4.2"
  std::optional<double> value;  // the same for programs; none for text and for missing cells
  std::optional<double> low, high;
  int64_t count = 0;     // values behind a mean
  int64_t expected = 0;  // values that would be there if none were missing
  bool best = false;     // printed bold
};

struct TableColumn {
  std::string name;
  std::string detail;  // a second header line: "string match, n=20"; may be empty
  std::string metric;  // what `value` is, for programs
};

struct TableRow {
  std::vector<std::string> headers;  // one for each of Table::row_headers
  std::vector<TableCell> cells;      // one for each column
  int group = 0;                     // a line is drawn where it changes
};

struct Table {
  std::string title;
  std::vector<std::pair<std::string, std::string>> attributes;  // "model": "SmolLM2-135M"
  std::string caption;  // what the values are: scale, interval
  std::vector<std::string> row_headers;
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
  std::vector<std::string> notes;
};

}  // namespace kvlab
