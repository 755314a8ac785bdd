#include "harness/kernels/decode_attention_impl.h"

namespace kvlab {

void decode_chunk_avx2(const DecodeChunk& chunk) { decode_chunk(chunk); }

}  // namespace kvlab
