#include "methods/attention_mass/attention_sums.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/kernels/dispatch.h"
#include "harness/kernels/parallel.h"
#include "harness/kernels/scratch.h"
#include "methods/attention_mass/attention_mass_kernels.h"
#include "methods/attention_mass/key_panels.h"

namespace kvlab {
namespace {

constexpr int64_t kKeysPerTask = 256;
constexpr int64_t kWidenedRowsPerTask = 512;

// bfloat16 rows [heads, len, head_dim] as contiguous floats.
HeadRows widen(const HeadRows& rows, int64_t heads, int64_t len, int64_t head_dim, float* wide) {
  const int64_t tasks_per_head = (len + kWidenedRowsPerTask - 1) / kWidenedRowsPerTask;
  parallel_for(heads * tasks_per_head, [&](int64_t task, int) {
    const int64_t head = task / tasks_per_head;
    const int64_t begin = task % tasks_per_head * kWidenedRowsPerTask;
    const int64_t end = std::min(len, begin + kWidenedRowsPerTask);
    for (int64_t r = begin; r < end; ++r) {
      const BFloat16* row = row_of<BFloat16>(rows, head, r);
      float* out = wide + (head * len + r) * head_dim;
#pragma omp simd
      for (int64_t d = 0; d < head_dim; ++d) {
        out[d] = to_float(row[d]);
      }
    }
  });
  return {wide, len * head_dim, head_dim};
}

// The same sums with queries and keys widened, where float32 products are the faster ones.
void add_widened_sums(const AttentionSumsArgs& args) {
  const int64_t query_floats = args.num_heads * args.q_len * args.head_dim;
  const int64_t key_floats = args.num_kv_heads * args.kv_len * args.head_dim;
  auto* wide = static_cast<float*>(thread_scratch(2, (query_floats + key_floats) * sizeof(float)));
  AttentionSumsArgs widened = args;
  widened.type = ElementType::kFloat32;
  widened.queries = widen(args.queries, args.num_heads, args.q_len, args.head_dim, wide);
  widened.keys =
      widen(args.keys, args.num_kv_heads, args.kv_len, args.head_dim, wide + query_floats);
  add_attention_sums(widened);
}

}  // namespace

void add_attention_sums(const AttentionSumsArgs& args) {
  KVLAB_CHECK(args.num_kv_heads >= 1 && args.num_heads % args.num_kv_heads == 0);
  KVLAB_CHECK(args.head_dim >= 1 && args.head_dim <= 256 && args.kv_len >= args.q_len);
  if (cpu_level() == CpuLevel::kReference) {
    add_attention_sums_reference(args);
    return;
  }
  if (args.type == ElementType::kBFloat16 && cpu_level() == CpuLevel::kAvx512Widen) {
    add_widened_sums(args);
    return;
  }
  const SumsBlockFunction function =
      args.head_dim % 16 == 0 ? KVLAB_KERNEL(sums_block) : sums_block_portable;
  const int64_t group_size = args.num_heads / args.num_kv_heads;
  const int64_t key_bytes = key_panel_bytes(args.type, args.head_dim, args.kv_len);
  char* key_panels = nullptr;
  if (function != sums_block_portable) {
    key_panels = static_cast<char*>(thread_scratch(0, args.num_kv_heads * key_bytes));
    pack_keys_of_heads(args.type, args.keys, args.num_kv_heads, args.head_dim, args.kv_len,
                       key_panels);
  }
  const int64_t tasks_per_head = (args.kv_len + kKeysPerTask - 1) / kKeysPerTask;
  // Early keys are seen by most rows: the longest tasks come first.
  parallel_for(args.num_heads * tasks_per_head, [&](int64_t task, int) {
    SumsBlock block;
    block.args = &args;
    block.head = task % args.num_heads;
    block.kv_head = block.head / group_size;
    block.key_begin = task / args.num_heads * kKeysPerTask;
    block.key_end = std::min(args.kv_len, block.key_begin + kKeysPerTask);
    block.key_panels = key_panels + block.kv_head * key_bytes;
    function(block);
  });
}

}  // namespace kvlab
