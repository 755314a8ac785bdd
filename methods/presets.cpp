#include "methods/presets.h"

namespace kvlab {

const std::vector<MethodDefinition>& method_definitions() {
#define KVLAB_DEFINITION(name) name##_method(),
  static const auto* const definitions =
      new std::vector<MethodDefinition>{KVLAB_METHODS(KVLAB_DEFINITION)};
#undef KVLAB_DEFINITION
  return *definitions;
}

}  // namespace kvlab
