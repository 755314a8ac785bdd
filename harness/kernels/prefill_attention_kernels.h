// The inner loops of prefill_attention: one head's block of queries over all keys it may see.
//
// Queries lie across the lanes of the registers, keys along the loops: a row's maximum, sum and
// rescaling are then lane-wise. Keys come in blocks that start at multiples of kKeyBlock whatever
// the queries, and what a query may not see adds exact zeros (values are finite), so that a query's
// bits do not depend on its block, on the chunk it came in, or on the threads.
#pragma once

#include <cstdint>

#include "harness/kernels/prefill_attention.h"

namespace kvlab {

constexpr int64_t kKeyBlock = 64;
constexpr int64_t kQueryBlock = 48;      // at most; three registers of queries
constexpr int64_t kTileQueryBlock = 32;  // the same for prefill_block_amx: two tiles

struct PrefillBlock {
  const PrefillAttentionArgs* args = nullptr;
  int64_t head = 0;
  int64_t kv_head = 0;
  int64_t q_begin = 0;
  int64_t q_count = 0;  // at most kQueryBlock
  // Values of kv_head in pairs of keys, [kv_len / 2, rounded up][head_dim][2], zero beyond the last
  // key; only for prefill_block_avx512 where the type is bfloat16.
  const BFloat16* value_pairs = nullptr;
  // Keys and values of kv_head as floats, [kv_len][head_dim]; for those that take float32 products
  // of bfloat16: prefill_block_portable, _avx2 and _avx512_widen.
  const float* wide_keys = nullptr;
  const float* wide_values = nullptr;
  // Only for prefill_block_amx: values of kv_head in blocks of keys, [kv_len rounded up to
  // kKeyBlock, / kKeyBlock][head_dim][kKeyBlock], and the keys of the last block if it is not full,
  // [kKeyBlock][head_dim]; both zero beyond the last key.
  const BFloat16* value_tiles = nullptr;
  const BFloat16* last_keys = nullptr;
  float* scratch = nullptr;  // prefill_scratch_floats(head_dim) of them, aligned to 64
};

constexpr int64_t prefill_scratch_floats(int64_t head_dim) {
  // Queries, outputs, scores and weights of a block; keys and values widened to float32.
  return kQueryBlock * (2 * head_dim + 2 * kKeyBlock) + 2 * kKeyBlock * head_dim;
}

using PrefillBlockFunction = void (*)(const PrefillBlock& block);
void prefill_block_portable(const PrefillBlock& block);
void prefill_block_avx2(const PrefillBlock& block);
void prefill_block_avx512(const PrefillBlock& block);
void prefill_block_avx512_widen(const PrefillBlock& block);
// bfloat16 and whole tiles (head_dim a multiple of 32) only.
void prefill_block_amx(const PrefillBlock& block);

// Keys [begin, end) of PrefillBlock::value_tiles; both multiples of kKeyBlock, `end` may lie beyond
// the last key.
void pack_value_tiles_amx(const PrefillAttentionArgs& args, int64_t kv_head, int64_t begin,
                          int64_t end, BFloat16* tiles);

}  // namespace kvlab
