#include "methods/attention_mass/attention_sums_impl.h"

namespace kvlab {

void sums_block_portable(const SumsBlock& block) { sums_block(block); }

}  // namespace kvlab
