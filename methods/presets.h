// The methods of the literature. A new one is a file in this folder that defines NAME_method(), and
// its line here.
#pragma once

#include "methods/method_definition.h"

// In the order of tables: references, then from the cheapest to the dearest.
#define KVLAB_METHODS(X) \
  X(full)                \
  X(oracle)              \
  X(random)              \
  X(streaming_llm)       \
  X(knorm)               \
  X(keydiff)             \
  X(tova)                \
  X(snapkv)              \
  X(pyramidkv)           \
  X(adakv)               \
  X(h2o)                 \
  X(expected_attention)  \
  X(laq)                 \
  X(speckv)              \
  X(lookahead_kv)

namespace kvlab {

#define KVLAB_DECLARE_METHOD(name) MethodDefinition name##_method();
KVLAB_METHODS(KVLAB_DECLARE_METHOD)
#undef KVLAB_DECLARE_METHOD

}  // namespace kvlab
