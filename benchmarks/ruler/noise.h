// The sentences that RULER's noise tasks repeat.
#pragma once

#include <string_view>

namespace kvlab {

inline constexpr std::string_view kRulerNoise =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

}  // namespace kvlab
