// H2O's score: the attention every key received, summed over all query rows, recomputed in blocks
// from the logarithm of each row's softmax denominator. LookaheadKV's where its rows have attended.
#pragma once

#include <cstdint>

#include "harness/kernels/element.h"

namespace kvlab {

// Causal and windowed as PrefillAttentionArgs; logsumexp is what prefill_attention wrote.
struct AttentionSumsArgs {
  ElementType type = ElementType::kFloat32;  // of queries and keys
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // divides num_heads
  int64_t head_dim = 0;      // at most 256; AVX-512 and AMX: multiples of 16
  int64_t q_len = 0;
  int64_t kv_len = 0;
  // The rows stand behind all keys, so that every row sees every key; else they are the last rows
  // of the keys' sequence, and kv_len is at least q_len.
  bool rows_follow_keys = false;
  float scale = 1;
  int64_t sliding_window = 0;        // 0: none
  HeadRows queries;                  // [num_heads, q_len, head_dim]
  HeadRows keys;                     // [num_kv_heads, kv_len, head_dim]
  const float* logsumexp = nullptr;  // [num_heads, q_len]
  float* sums = nullptr;             // key k of head h at sums[h * sums_head_stride + k]; added to
  int64_t sums_head_stride = 0;

  int64_t first_position() const { return rows_follow_keys ? kv_len : kv_len - q_len; }  // of rows
};

// Adds each row's weights to `sums`, so that a prefill in chunks ends with the sums over all rows.
// The result does not depend on the number of threads.
void add_attention_sums(const AttentionSumsArgs& args);

// The same in plain float32 loops.
void add_attention_sums_reference(const AttentionSumsArgs& args);

}  // namespace kvlab
