// Keys of all KV heads packed for the inner loops, and queries in their type.
#pragma once

#include <cstdint>

#include "harness/kernels/element.h"

namespace kvlab {

// keys [num_kv_heads, len, head_dim] of `type` -> panels of `packed_type` (the same, or float32),
// key_panel_bytes() for each head. Runs in parallel.
void pack_keys_of_heads(ElementType type, ElementType packed_type, const HeadRows& keys,
                        int64_t num_kv_heads, int64_t head_dim, int64_t len, char* panels);

// Whether the level's own loops take rows of head_dim; the shared ones (dispatch.h) take any.
bool own_loops_take(int64_t head_dim);

// The type in which the inner loops multiply: float32 where there are no pairs of bfloat16 or these
// are slower, or rows of head_dim are no whole tiles.
ElementType product_type(ElementType type, int64_t head_dim);

// Queries [num_heads, len, head_dim] in that type: as they are, or widened in the caller's scratch
// slot 2.
HeadRows queries_for_products(ElementType type, const HeadRows& queries, int64_t num_heads,
                              int64_t len, int64_t head_dim);

}  // namespace kvlab
