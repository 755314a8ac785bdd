// Which prompt entries each layer and KV head keeps: plain data, stored, compared and drawn.
#pragma once

#include <cstdint>
#include <vector>

namespace kvlab {

struct Selection {
  int64_t prompt_len = 0;
  // kept[layer][kv_head]: logical prompt positions, ascending, without repeats.
  std::vector<std::vector<std::vector<int32_t>>> kept;

  // Entries over all layers and heads.
  int64_t total_entries() const {
    int64_t total = 0;
    for (const auto& layer : kept) {
      for (const auto& head : layer) {
        total += static_cast<int64_t>(head.size());
      }
    }
    return total;
  }
};

}  // namespace kvlab
