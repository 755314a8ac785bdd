// Where along the prompt a layer keeps its entries.
#pragma once

#include <cstdint>
#include <vector>

namespace kvlab {

// Positions `begin` to `end`, and the share of them that the layer's heads keep on average.
struct KeptStretch {
  int64_t begin = 0;
  int64_t end = 0;
  double share = 0;
};

// The prompt in `count` stretches of nearly one length, or in single positions where it is shorter
// than that. `prompt_len` > 0.
std::vector<KeptStretch> kept_stretches(const std::vector<std::vector<int32_t>>& heads,
                                        int64_t prompt_len, int64_t count);

}  // namespace kvlab
