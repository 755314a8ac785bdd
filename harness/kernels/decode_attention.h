// Attention of single tokens over ragged caches: every arm and KV head has its own length.
#pragma once

#include <cstdint>
#include <span>

#include "harness/kernels/element.h"

namespace kvlab {

// One arm's KV head: the query heads of its group over two runs of entries, the kept prompt entries
// and the new ones. Either run may be empty, not both.
struct DecodeHead {
  const void* queries = nullptr;        // [group_size, head_dim] contiguous
  const void* prompt_keys = nullptr;    // [prompt_len, head_dim] contiguous
  const void* prompt_values = nullptr;  // [prompt_len, head_dim] contiguous
  int64_t prompt_len = 0;
  const void* new_keys = nullptr;    // [new_len, head_dim] contiguous
  const void* new_values = nullptr;  // [new_len, head_dim] contiguous
  int64_t new_len = 0;               // the current token's own entry included
  void* output = nullptr;            // [group_size, head_dim] contiguous
};

struct DecodeAttentionArgs {
  ElementType type = ElementType::kFloat32;  // of everything
  int64_t group_size = 0;                    // num_heads / num_kv_heads
  int64_t head_dim = 0;                      // at most 256
  float scale = 1;
  std::span<const DecodeHead> heads;
};

// Softmax and sums in float32. A head's result depends on that head alone, bit for bit. A block of
// tokens over one cache is the same call with one DecodeHead per token and KV head, new_len
// growing.
void decode_attention(const DecodeAttentionArgs& args);

// The same in plain float32 loops.
void decode_attention_reference(const DecodeAttentionArgs& args);

}  // namespace kvlab
