// The SQL in docs/results.md, so that tests run what the page shows.
#pragma once

#include <string>
#include <vector>

#include "harness/base/files.h"

namespace kvlab {

inline std::vector<std::string> documented_queries() {
  const std::string page =
      read_file(std::string(KVLAB_SOURCE_DIR) + "/docs/results.md").value_or("");
  const std::string open = "```sql\n";
  std::vector<std::string> queries;
  for (size_t at = page.find(open); at != std::string::npos; at = page.find(open, at)) {
    const size_t begin = at + open.size();
    at = page.find("```", begin);
    queries.push_back(page.substr(begin, at - begin));
  }
  return queries;
}

}  // namespace kvlab
