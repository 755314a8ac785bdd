#include "reports/kept_stretches.h"

#include <algorithm>

namespace kvlab {

std::vector<KeptStretch> kept_stretches(const std::vector<std::vector<int32_t>>& heads,
                                        int64_t prompt_len, int64_t count) {
  count = std::min(count, prompt_len);
  std::vector<int64_t> kept(static_cast<size_t>(count), 0);
  for (const auto& head : heads) {
    for (const int32_t position : head) {
      ++kept[static_cast<size_t>(position * count / prompt_len)];
    }
  }
  const auto num_heads = static_cast<int64_t>(heads.size());
  std::vector<KeptStretch> stretches;
  for (int64_t i = 0; i < count; ++i) {
    // Positions p with p * count / prompt_len == i.
    const int64_t begin = (i * prompt_len + count - 1) / count;
    const int64_t end = ((i + 1) * prompt_len + count - 1) / count;
    const double share = static_cast<double>(kept[static_cast<size_t>(i)]) /
                         static_cast<double>(std::max<int64_t>(1, (end - begin) * num_heads));
    stretches.push_back({begin, end, share});
  }
  return stretches;
}

}  // namespace kvlab
