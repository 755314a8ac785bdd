// Attention mass: what a few query rows pay to each prompt key, the score behind most methods.
#pragma once

#include <cstdint>

#include "harness/kernels/element.h"

namespace kvlab {

enum class RowReduction { kSum, kMean, kMax };

// Row r sees the prompt keys first_visible[r] <= key < visible[r] and the first extra_visible[r]
// extra keys (a learned or draft row's own keys: they take their part of the softmax but are not
// scored). Query head h reads KV head h / (num_heads / num_kv_heads).
struct AttentionMassArgs {
  ElementType type = ElementType::kFloat32;  // of queries, keys and extra keys
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // divides num_heads
  int64_t head_dim = 0;      // at most 256; AVX-512 and AMX: multiples of 16
  int64_t num_rows = 0;      // at least 1
  int64_t num_keys = 0;
  int64_t num_extra_keys = 0;
  float scale = 1;
  HeadRows queries;                        // [num_heads, num_rows, head_dim]
  HeadRows keys;                           // [num_kv_heads, num_keys, head_dim]
  HeadRows extra_keys;                     // [num_kv_heads, num_extra_keys, head_dim]
  const int64_t* first_visible = nullptr;  // [num_rows]; null: 0 for all
  const int64_t* visible = nullptr;        // [num_rows]; null: num_keys for all
  const int64_t* extra_visible = nullptr;  // [num_rows]; null: num_extra_keys for all
  RowReduction reduction = RowReduction::kMean;
  float* mass = nullptr;  // [num_heads, num_keys], written
};

// Scores and softmax in float32; a key that a row does not see counts as 0 for that row, and the
// mean divides by num_rows; a row that sees nothing adds 0. Never holds more than a block of
// scores. The result does not depend on the number of threads.
void attention_mass(const AttentionMassArgs& args);

// The same in plain float32 loops.
void attention_mass_reference(const AttentionMassArgs& args);

}  // namespace kvlab
