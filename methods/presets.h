// The methods of the literature, each as a definition. presets.cpp lists them.
#pragma once

#include "methods/method_definition.h"

namespace kvlab {

MethodDefinition full_method();
MethodDefinition random_method();
MethodDefinition streaming_llm_method();
MethodDefinition snapkv_method();
MethodDefinition pyramidkv_method();
MethodDefinition adakv_method();
MethodDefinition h2o_method();
MethodDefinition tova_method();
MethodDefinition knorm_method();
MethodDefinition keydiff_method();
MethodDefinition expected_attention_method();
MethodDefinition laq_method();
MethodDefinition speckv_method();
MethodDefinition oracle_method();
MethodDefinition lookahead_kv_method();

}  // namespace kvlab
