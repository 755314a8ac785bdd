#include "methods/presets.h"

namespace kvlab {

const std::vector<MethodDefinition>& method_definitions() {
  // The order of tables: references, then from the cheapest to the dearest.
  // clang-format off
  static const auto* const definitions = new std::vector<MethodDefinition>{
      full_method(),
      oracle_method(),
      random_method(),
      streaming_llm_method(),
      knorm_method(),
      keydiff_method(),
      tova_method(),
      snapkv_method(),
      pyramidkv_method(),
      adakv_method(),
      h2o_method(),
      expected_attention_method(),
      laq_method(),
      speckv_method(),
      lookahead_kv_method(),
  };
  // clang-format on
  return *definitions;
}

}  // namespace kvlab
