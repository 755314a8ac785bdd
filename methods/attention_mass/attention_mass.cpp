#include "methods/attention_mass/attention_mass.h"

namespace kvlab {

void attention_mass(const AttentionMassArgs& args) { attention_mass_reference(args); }

}  // namespace kvlab
