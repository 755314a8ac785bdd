#include "harness/kernels/cuda/launch.cuh"
#include "methods/attention_mass/cuda/attention_mass_kernel.h"
#include "methods/attention_mass/cuda/launches.h"
#include "methods/attention_mass/cuda/tensor_strip.cuh"

namespace kvlab {

int launch_attention_mass(const CudaAttentionMassArgs& args, void* stream) {
  GpuLauncher launcher(stream);
  launch_mass(launcher, args);
  return launcher.error();
}

int launch_attention_sums(const AttentionSumsArgs& args, void* stream) {
  GpuLauncher launcher(stream);
  launch_sums(launcher, args);
  return launcher.error();
}

int launch_score_reduction(const float* scores, int64_t num_heads, int64_t num_groups,
                           int64_t num_keys, const ScoreReduction& reduction, float* out,
                           void* stream) {
  GpuLauncher launcher(stream);
  launch_reduction(launcher, scores, num_heads, num_groups, num_keys, reduction, out);
  return launcher.error();
}

}  // namespace kvlab
