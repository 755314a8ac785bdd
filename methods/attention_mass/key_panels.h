// Keys of all KV heads packed for the AVX-512 inner loops.
#pragma once

#include <cstdint>

#include "harness/kernels/element.h"

namespace kvlab {

// keys [num_kv_heads, len, head_dim] -> panels, key_panel_bytes() for each head. Runs in parallel.
void pack_keys_of_heads(ElementType type, const HeadRows& keys, int64_t num_kv_heads,
                        int64_t head_dim, int64_t len, char* panels);

}  // namespace kvlab
