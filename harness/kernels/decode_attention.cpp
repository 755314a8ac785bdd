#include "harness/kernels/decode_attention.h"

namespace kvlab {

void decode_attention(const DecodeAttentionArgs& args) { decode_attention_reference(args); }

}  // namespace kvlab
