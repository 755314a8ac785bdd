// Weights of any shape without a checkpoint, for measuring: time and memory do not depend on what
// the numbers are.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "harness/model/model_config.h"
#include "harness/model/weights.h"

namespace kvlab {

// Matrices normal with deviation 0.02, norms 1, biases 0, made on `device`; the same for the same
// seed, device and dtype.
ModelWeights random_weights(const ModelConfig& config, at::ScalarType dtype, at::Device device,
                            uint64_t seed);

}  // namespace kvlab
