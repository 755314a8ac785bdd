// Causal attention of a block of queries over the keys and values so far.
#pragma once

#include <cstdint>

#include "harness/kernels/element.h"

namespace kvlab {

// Query i stands at position p = kv_len - q_len + i and sees keys 0..p (lower-right causal), or
// with a sliding window only the last `sliding_window` of these. Query head h reads KV head h /
// (num_heads / num_kv_heads).
struct PrefillAttentionArgs {
  ElementType type = ElementType::kFloat32;  // of queries, keys, values and output
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // divides num_heads
  int64_t head_dim = 0;      // at most 256; AVX-512 and AMX: multiples of 16
  int64_t q_len = 0;
  int64_t kv_len = 0;  // at least q_len
  float scale = 1;
  int64_t sliding_window = 0;  // 0: none
  HeadRows queries;            // [num_heads, q_len, head_dim]
  HeadRows keys;               // [num_kv_heads, kv_len, head_dim]
  HeadRows values;             // [num_kv_heads, kv_len, head_dim]
  MutableHeadRows output;      // [num_heads, q_len, head_dim]
  // [num_heads, q_len], natural logarithm of the sum of exp(scaled score); null: not wanted.
  float* logsumexp = nullptr;
};

// Softmax and sums in float32; for bfloat16 the weights may be rounded to bfloat16 before they meet
// the values (CpuLevel::kAvx512 and kAmx do). The result does not depend on the number of threads.
void prefill_attention(const PrefillAttentionArgs& args);

// The same in plain float32 loops.
void prefill_attention_reference(const PrefillAttentionArgs& args);

}  // namespace kvlab
