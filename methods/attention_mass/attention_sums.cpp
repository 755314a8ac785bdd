#include "methods/attention_mass/attention_sums.h"

namespace kvlab {

void add_attention_sums(const AttentionSumsArgs& args) { add_attention_sums_reference(args); }

}  // namespace kvlab
