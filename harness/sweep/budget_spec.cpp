#include "harness/sweep/budget_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvlab {

std::string BudgetSpec::text() const {
  return share ? fmt::format("{}%", *share * 100) : fmt::format("{}", tokens);
}

int64_t BudgetSpec::resolve(int64_t prompt_len) const {
  if (!share) {
    return tokens;
  }
  return std::max<int64_t>(1, std::llround(*share * static_cast<double>(prompt_len)));
}

}  // namespace kvlab
