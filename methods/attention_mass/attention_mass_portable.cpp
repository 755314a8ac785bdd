#include "methods/attention_mass/attention_mass_impl.h"

namespace kvlab {

void mass_block_portable(const MassBlock& block) { mass_block(block); }

}  // namespace kvlab
