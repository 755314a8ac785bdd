#include "harness/kernels/prefill_attention.h"

namespace kvlab {

void prefill_attention(const PrefillAttentionArgs& args) { prefill_attention_reference(args); }

}  // namespace kvlab
