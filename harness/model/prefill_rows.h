// What a decoder layer does to its rows one by one, over a chunk of the prompt on the CPU:
// everything between one attention and the next.
//
// A task takes a block of rows through all steps while what they leave stays in the core's own
// cache; one call a layer instead of ten. Every step is one of row_kernels.h, packed_linear.h or
// low_rank_update.h, so the bits are those of the steps called one after the other, for any block
// and any number of threads. No torch.
#pragma once

#include <cstdint>

#include "harness/kernels/element.h"
#include "harness/kernels/packed_linear.h"
#include "harness/model/row_updates.h"

namespace kvlab {

struct PrefillRowsArgs {
  ElementType type = ElementType::kFloat32;  // of every array but the angles
  int64_t rows = 0;
  float eps = 0;
  void* hidden = nullptr;  // [rows, hidden_size]; the layer's output where `attended` is given

  // The half of a layer that follows attention; null `attended`: none, `hidden` is the embedding.
  const void* attended = nullptr;  // [rows, num_heads * head_dim]
  const PackedLinear* o = nullptr;
  const void* mlp_norm = nullptr;         // [hidden_size]
  const PackedLinear* gate_up = nullptr;  // [gate; up]
  const PackedLinear* down = nullptr;

  // The norm of what comes next.
  const void* norm = nullptr;  // [hidden_size]
  void* normed = nullptr;      // [rows, hidden_size]; null: not wanted

  // The half of a layer that precedes attention; null `qkv`: none.
  const PackedLinear* qkv = nullptr;  // [q; k; v]
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  const void* q_norm = nullptr;  // [head_dim] or null
  const void* k_norm = nullptr;
  const float* cos = nullptr;  // [rows, head_dim / 2]
  const float* sin = nullptr;
  bool rotate_queries = true;  // false: the queries are left as they are before rotation
  MutableHeadRows queries;     // [num_heads, rows, head_dim]
  MutableHeadRows keys;        // [num_kv_heads, rows, head_dim]
  MutableHeadRows values;      // [num_kv_heads, rows, head_dim]

  RowUpdates updates;        // of the linear layers above
  int64_t updates_from = 0;  // the first row that has them
};
void prefill_rows(const PrefillRowsArgs& args);

}  // namespace kvlab
