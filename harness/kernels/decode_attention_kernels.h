// The inner loops of decode_attention: one chunk of one head's entries.
#pragma once

#include <cstdint>

#include "harness/kernels/element.h"

namespace kvlab {

// Entries side by side in memory; a chunk has at most two such runs.
struct DecodeRun {
  const void* keys = nullptr;    // [len, head_dim]
  const void* values = nullptr;  // [len, head_dim]
  int64_t len = 0;
};

struct DecodeChunk {
  ElementType type = ElementType::kFloat32;
  int64_t group_size = 0;
  int64_t head_dim = 0;
  float scale = 1;
  const void* queries = nullptr;  // [group_size, head_dim]
  DecodeRun runs[2];
  // Keys that this thread likely reads next, to be brought near meanwhile; null: none.
  const void* next_keys = nullptr;
  int64_t next_len = 0;
  float* weights = nullptr;  // scratch [group_size, score_stride]
  int64_t score_stride = 0;  // the chunk's entries, rounded up to 16
  // What the chunk leaves: per query row its largest scaled score, the sum of exp(score - largest),
  // and the values so weighted, not yet divided.
  float* largest = nullptr;  // [group_size]
  float* sum = nullptr;      // [group_size]
  float* output = nullptr;   // [group_size, head_dim]
};

// An entry's score and its part of the output are the same bits wherever the runs divide.
using DecodeChunkFunction = void (*)(const DecodeChunk& chunk);
void decode_chunk_portable(const DecodeChunk& chunk);
void decode_chunk_avx2(const DecodeChunk& chunk);
void decode_chunk_avx512(const DecodeChunk& chunk);

}  // namespace kvlab
