// The inner loops of attention_mass and add_attention_sums.
#pragma once

#include <cstdint>

#include "methods/attention_mass/attention_mass.h"
#include "methods/attention_mass/attention_sums.h"

namespace kvlab {

// The larger of two masses; what is no number stays, so that it is found.
static inline float larger_or_broken(float before, float weight) {
  return before != before || weight <= before ? before : weight;
}

constexpr int64_t kMassRows = 12;  // query rows of one register tile

// Bytes of `len` keys in panels of 16, two panels at a time (key_panels_avx512.h).
constexpr int64_t key_panel_bytes(ElementType type, int64_t head_dim, int64_t len) {
  return (len + 31) / 32 * 32 * head_dim * element_size(type);
}

// Packs keys [len, head_dim] (row_stride elements apart) from `keys` into whole pairs of panels of
// `packed_type`: theirs, or float32 where they are bfloat16.
void pack_key_panels_avx512(ElementType type, ElementType packed_type, const void* keys,
                            int64_t row_stride, int64_t head_dim, int64_t len, char* panels);

// A few query rows of one head over all keys.
struct MassBlock {
  const AttentionMassArgs* args = nullptr;
  int64_t head = 0;
  int64_t kv_head = 0;
  int64_t row_begin = 0;
  int64_t row_count = 0;               // at most kMassRows
  const char* key_panels = nullptr;    // of kv_head
  const char* extra_panels = nullptr;  // the same of the extra keys
  float* scores = nullptr;             // scratch, mass_score_stride() floats for each row
  float* mass = nullptr;               // [num_keys]: rows are added to, or the maximum taken with
};

constexpr int64_t mass_score_stride(const AttentionMassArgs& args) {
  return (args.num_keys + 31) / 32 * 32 + (args.num_extra_keys + 31) / 32 * 32;
}

using MassBlockFunction = void (*)(const MassBlock& block);
void mass_block_portable(const MassBlock& block);  // float32, as avx2
void mass_block_avx2(const MassBlock& block);
void mass_block_avx512(const MassBlock& block);
void mass_block_amx(const MassBlock& block);  // bfloat16 in whole tiles (product_type)

// All query rows of one head that see keys [key_begin, key_end); key_begin is a multiple of 32.
struct SumsBlock {
  const AttentionSumsArgs* args = nullptr;
  int64_t head = 0;
  int64_t kv_head = 0;
  int64_t key_begin = 0;
  int64_t key_end = 0;
  const char* key_panels = nullptr;  // of kv_head, from key 0
};

using SumsBlockFunction = void (*)(const SumsBlock& block);
void sums_block_portable(const SumsBlock& block);  // float32, as avx2
void sums_block_avx2(const SumsBlock& block);
void sums_block_avx512(const SumsBlock& block);
void sums_block_amx(const SumsBlock& block);  // bfloat16 in whole tiles (product_type)

}  // namespace kvlab
