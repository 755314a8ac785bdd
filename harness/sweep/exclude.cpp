#include "harness/sweep/exclude.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "harness/base/status.h"
#include "harness/sweep/budget_spec.h"

namespace kvlab {
namespace {

// A budget in a rule is written as in `budgets`: 128, {"share": 0.1} or "10%".
std::string rule_text(const Json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_object() && value.contains("share") && value.at("share").is_number()) {
    return share_text(value.at("share").get<double>());
  }
  return dump_json(value);
}

bool rule_matches(const Json& wanted, const std::string& actual) {
  if (!wanted.is_array()) {
    return rule_text(wanted) == actual;
  }
  for (const Json& one : wanted) {
    if (rule_text(one) == actual) {
      return true;
    }
  }
  return false;
}

std::string fact(const CellFacts& facts, const std::string& key) {
  if (key == "model") return facts.model;
  if (key == "benchmark") return facts.benchmark;
  if (key == "task") return facts.task;
  if (key == "length") return fmt::format("{}", facts.length);
  if (key == "method") return facts.method;
  if (key == "label") return facts.label;
  if (key == "budget") return facts.budget;
  return facts.question_aware ? "true" : "false";  // question_aware; the schema knows no other
}

// The standard library's matcher recurses once a character, down a stack of some megabytes.
constexpr size_t kMaxPatternLength = 2000;

}  // namespace

std::string CellFacts::path(const std::string& method_or_label) const {
  return fmt::format("{}/{}/{}/{}/{}", benchmark, task, length, method_or_label, budget);
}

absl::StatusOr<CellFilter> CellFilter::make(const std::vector<Json>& exclude,
                                            const std::string& pattern) {
  if (pattern.size() > kMaxPatternLength) {
    return invalid_argument("--filter has {} characters, at most {} are taken: use several runs",
                            pattern.size(), kMaxPatternLength);
  }
  CellFilter filter;
  for (const Json& rule : exclude) {
    filter.exclude_.push_back({.wanted = rule});
  }
  filter.has_pattern_ = !pattern.empty();
  try {
    filter.pattern_ = std::regex(pattern);
  } catch (const std::regex_error& error) {
    return invalid_argument("--filter \"{}\" is not a regular expression: {}", pattern,
                            error.what());
  }
  return filter;
}

bool CellFilter::keeps(const CellFacts& facts) {
  bool excluded = false;
  for (Rule& rule : exclude_) {
    bool all = true;
    for (const auto& [key, wanted] : rule.wanted.items()) {
      const std::string actual = fact(facts, key);
      all = all && rule_matches(wanted, actual);
      seen_[key].insert(actual);
    }
    rule.matched = rule.matched || all;
    excluded = excluded || all;
  }
  return !excluded &&
         (!has_pattern_ || std::regex_search(facts.path(facts.method), pattern_) ||
          (facts.label != facts.method && std::regex_search(facts.path(facts.label), pattern_)));
}

absl::Status CellFilter::check_rules() const {
  for (size_t i = 0; i < exclude_.size(); ++i) {
    const Json& rule = exclude_[i].wanted;
    if (exclude_[i].matched) {
      continue;
    }
    for (const auto& [key, wanted] : rule.items()) {
      const std::set<std::string>& values = seen_.at(key);
      if (std::none_of(values.begin(), values.end(),
                       [&](const std::string& value) { return rule_matches(wanted, value); })) {
        return invalid_argument("exclude[{}]: no cell has \"{}\": {}; there are: {}", i, key,
                                dump_json(wanted), fmt::join(values, ", "));
      }
    }
    return invalid_argument("exclude[{}]: no cell has all of {}", i, dump_json(rule));
  }
  return absl::OkStatus();
}

}  // namespace kvlab
