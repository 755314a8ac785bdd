#include "harness/kernels/prefill_attention_impl.h"

namespace kvlab {

void prefill_block_avx2(const PrefillBlock& block) { prefill_block(block); }

}  // namespace kvlab
