// Asking for memory ahead of its use.
#pragma once

#include <cstdint>

namespace kvlab {

// Asks for `bytes` from `from` on. In every caller's own instructions: no copy of one serves
// another.
[[gnu::always_inline]] static inline void bring_near(const void* from, int64_t bytes) {
  for (int64_t offset = 0; offset < bytes; offset += 64) {
    __builtin_prefetch(static_cast<const char*>(from) + offset);
  }
}

}  // namespace kvlab
