// The `exclude` rules and the --filter option: which cells of the cross product are left out.
#pragma once

#include <absl/status/statusor.h>

#include <regex>
#include <string>
#include <vector>

#include "harness/base/json.h"

namespace kvlab {

// What a rule or filter can look at.
struct CellFacts {
  std::string model;
  std::string benchmark;
  std::string task;
  int64_t length = 0;
  std::string method;
  std::string label;
  std::string budget;  // "128", "12.5%", "full"
  bool question_aware = true;

  // "ruler/vt/4096/snapkv/128", what --filter is matched against, with the method's name and with
  // its label.
  std::string path(const std::string& method_or_label) const;
};

class CellFilter final {
 public:
  // `exclude`: objects whose keys are CellFacts' and whose values are one value or a list.
  // `pattern`: a regular expression searched in CellFacts::path(); empty keeps everything, one of
  // over 2,000 characters is an error.
  static absl::StatusOr<CellFilter> make(const std::vector<Json>& exclude,
                                         const std::string& pattern);

  bool keeps(const CellFacts& facts) const;

 private:
  std::vector<Json> exclude_;
  bool has_pattern_ = false;
  std::regex pattern_;
};

}  // namespace kvlab
