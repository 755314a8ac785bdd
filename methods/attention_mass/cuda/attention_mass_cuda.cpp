#include "methods/attention_mass/cuda/attention_mass_cuda.h"

#include <string_view>

#include "harness/base/status.h"
#include "harness/kernels/cuda/cuda_device.h"
#include "methods/attention_mass/cuda/attention_mass_kernel.h"
#include "methods/attention_mass/cuda/launches.h"

namespace kvlab {
namespace {

absl::Status check_heads(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim,
                         std::string_view what) {
  if (num_kv_heads < 1 || num_heads < num_kv_heads || num_heads % num_kv_heads != 0 ||
      num_heads / num_kv_heads > kMassMaxGroup) {
    return invalid_argument(
        "{} on the GPU: {} query heads on {} KV heads, must be a multiple, at most {} to one", what,
        num_heads, num_kv_heads, kMassMaxGroup);
  }
  if (head_dim < 8 || head_dim % 8 != 0 || head_dim > 256) {
    return invalid_argument(
        "{} on the GPU: the head dimension is {}, must be a multiple of 8 up to 256", what,
        head_dim);
  }
  return absl::OkStatus();
}

absl::Status check_rows(const HeadRows& rows, ElementType type, std::string_view what) {
  const int64_t vector = kVectorBytes / element_size(type);
  if (reinterpret_cast<uintptr_t>(rows.data) % kVectorBytes != 0 || rows.row_stride % vector != 0 ||
      rows.head_stride % vector != 0) {
    return invalid_argument("attention on the GPU: the rows of the {} do not start on {} bytes",
                            what, kVectorBytes);
  }
  return absl::OkStatus();
}

absl::Status check_reduction(const ScoreReduction& reduction, int64_t num_keys) {
  if (reduction.num_scored < 0 || reduction.num_scored > num_keys) {
    return invalid_argument("score reduction on the GPU: {} keys to score out of {}",
                            reduction.num_scored, num_keys);
  }
  if (reduction.pooling != PoolKind::kNone && (reduction.kernel < 1 || reduction.kernel % 2 == 0)) {
    return invalid_argument("score reduction on the GPU: a pooling kernel of {}, must be odd",
                            reduction.kernel);
  }
  return absl::OkStatus();
}

}  // namespace

int64_t cuda_attention_mass_scratch_bytes(const AttentionMassArgs& args) {
  return args.num_heads * args.num_rows * (2 + 2 * mass_chunks(mass_input(args))) * 4;
}

absl::Status attention_mass_cuda(const CudaAttentionMassArgs& args, void* stream) {
  constexpr std::string_view kWhat = "attention mass";
  const AttentionMassArgs& mass = args.mass;
  KVLAB_RETURN_IF_ERROR(check_heads(mass.num_heads, mass.num_kv_heads, mass.head_dim, kWhat));
  KVLAB_RETURN_IF_ERROR(check_rows(mass.queries, mass.type, "queries"));
  KVLAB_RETURN_IF_ERROR(check_rows(mass.keys, mass.type, "keys"));
  KVLAB_RETURN_IF_ERROR(check_rows(mass.extra_keys, mass.type, "extra keys"));
  if (mass.num_rows < 1 || mass.num_keys < 1) {
    return invalid_argument("{} on the GPU: {} query rows over {} keys", kWhat, mass.num_rows,
                            mass.num_keys);
  }
  if (args.reduced != nullptr) {
    KVLAB_RETURN_IF_ERROR(check_reduction(args.reduction, mass.num_keys));
    if (args.reduction.pooling != PoolKind::kNone && args.reduction.kernel > kMassMaxPoolKernel) {
      return invalid_argument("{} on the GPU: a pooling kernel of {}, at most {}", kWhat,
                              args.reduction.kernel, kMassMaxPoolKernel);
    }
  }
  return cuda_status(launch_attention_mass(args, stream), kWhat);
}

absl::Status add_attention_sums_cuda(const AttentionSumsArgs& args, void* stream) {
  constexpr std::string_view kWhat = "attention sums";
  KVLAB_RETURN_IF_ERROR(check_heads(args.num_heads, args.num_kv_heads, args.head_dim, kWhat));
  KVLAB_RETURN_IF_ERROR(check_rows(args.queries, args.type, "queries"));
  KVLAB_RETURN_IF_ERROR(check_rows(args.keys, args.type, "keys"));
  if (args.q_len < 1 || args.kv_len < args.q_len || args.rows_follow_keys) {
    return invalid_argument("{} on the GPU: {} queries over {} keys{}", kWhat, args.q_len,
                            args.kv_len, args.rows_follow_keys ? " before them" : "");
  }
  return cuda_status(launch_attention_sums(args, stream), kWhat);
}

absl::Status reduce_scores_cuda(const float* scores, int64_t num_heads, int64_t num_groups,
                                int64_t num_keys, const ScoreReduction& reduction, float* out,
                                void* stream) {
  constexpr std::string_view kWhat = "score reduction";
  if (num_groups < 1 || num_heads < num_groups || num_heads % num_groups != 0) {
    return invalid_argument("{} on the GPU: {} heads do not divide into {} groups", kWhat,
                            num_heads, num_groups);
  }
  KVLAB_RETURN_IF_ERROR(check_reduction(reduction, num_keys));
  return cuda_status(
      launch_score_reduction(scores, num_heads, num_groups, num_keys, reduction, out, stream),
      kWhat);
}

}  // namespace kvlab
