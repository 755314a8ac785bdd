#include "harness/sweep/budget_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvlab {

// Twelve digits hide what a decimal share lacks in binary: 0.07 * 100 is 7.000000000000001.
std::string share_text(double share) { return fmt::format("{:.12g}%", share * 100); }

std::string BudgetSpec::text() const {
  return share ? share_text(*share) : fmt::format("{}", tokens);
}

int64_t BudgetSpec::resolve(int64_t prompt_len) const {
  if (!share) {
    return tokens;
  }
  return std::max<int64_t>(1, std::llround(*share * static_cast<double>(prompt_len)));
}

}  // namespace kvlab
