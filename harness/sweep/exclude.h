// The `exclude` rules and the --filter option: which cells of the cross product are left out.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <regex>
#include <set>
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

  // Whether the cell runs. Remembers what it was shown for check_rules().
  bool keeps(const CellFacts& facts);

  // An error for a rule that none of the cells matched, with the values there were.
  absl::Status check_rules() const;

 private:
  struct Rule {
    Json wanted;
    bool matched = false;
  };
  std::vector<Rule> exclude_;
  std::map<std::string, std::set<std::string>> seen_;  // the cells' values, by key
  bool has_pattern_ = false;
  std::regex pattern_;
};

}  // namespace kvlab
