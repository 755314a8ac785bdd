// One arm of a sweep: a method with all its parameters, at one budget, in one question mode.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "harness/sweep/budget_spec.h"
#include "methods/eviction_policy.h"
#include "results/record.h"

namespace kvlab {

struct Arm {
  std::shared_ptr<const EvictionPolicy> policy;
  Setting method;                    // name, resolved parameters, label
  std::optional<BudgetSpec> budget;  // none: the method takes no budget ("full")
  bool question_aware = true;

  // As results store it: "128", "12.5%", "full".
  std::string budget_text() const { return budget ? budget->text() : "full"; }
};

}  // namespace kvlab
