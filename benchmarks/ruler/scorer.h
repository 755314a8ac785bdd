// RULER's string match (NVIDIA/RULER scripts/eval/synthetic/constants.py).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/benchmark.h"

namespace kvlab {

// 0 to 100. Control characters of the reply become newlines first; a reference counts as found
// where it occurs in the reply, case aside. `any_reference`: 100 when one is found
// ("string_match_part"); otherwise the share found ("string_match_all").
Score ruler_score(const std::vector<std::string>& references, bool any_reference,
                  std::string_view reply);

}  // namespace kvlab
