#include "methods/attention_mass/key_panels.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/kernels/cpu_level.h"
#include "harness/kernels/parallel.h"
#include "harness/kernels/scratch.h"
#include "harness/kernels/widen.h"
#include "methods/attention_mass/attention_mass_kernels.h"

namespace kvlab {

#if defined(KVLAB_AVX512)

void pack_keys_of_heads(ElementType type, ElementType packed_type, const HeadRows& keys,
                        int64_t num_kv_heads, int64_t head_dim, int64_t len, char* panels) {
  constexpr int64_t kKeysPerTask = 512;
  const int64_t tasks_per_head = (len + kKeysPerTask - 1) / kKeysPerTask;
  parallel_for(num_kv_heads * tasks_per_head, [&](int64_t task, int) {
    const int64_t kv_head = task / tasks_per_head;
    const int64_t begin = task % tasks_per_head * kKeysPerTask;
    const auto* first = static_cast<const char*>(keys.data) +
                        (kv_head * keys.head_stride + begin * keys.row_stride) * element_size(type);
    pack_key_panels_avx512(type, packed_type, first, keys.row_stride, head_dim,
                           std::min(kKeysPerTask, len - begin),
                           panels + kv_head * key_panel_bytes(packed_type, head_dim, len) +
                               begin * head_dim * element_size(packed_type));
  });
}

#else

void pack_keys_of_heads(ElementType, ElementType, const HeadRows&, int64_t, int64_t, int64_t,
                        char*) {
  KVLAB_CHECK(false);  // only the AVX-512 loops take panels
}

#endif

ElementType product_type(ElementType type, int64_t head_dim) {
  const bool widened = cpu_level() == CpuLevel::kAvx512Widen ||
                       (cpu_level() == CpuLevel::kAmx && head_dim % kTileDepth != 0);
  return widened ? ElementType::kFloat32 : type;
}

HeadRows queries_for_products(ElementType type, const HeadRows& queries, int64_t num_heads,
                              int64_t len, int64_t head_dim) {
  if (product_type(type, head_dim) == type) {
    return queries;
  }
  auto* wide = static_cast<float*>(thread_scratch(2, num_heads * len * head_dim * sizeof(float)));
  constexpr int64_t kRowsPerTask = 512;
  const int64_t tasks_per_head = (len + kRowsPerTask - 1) / kRowsPerTask;
  parallel_for(num_heads * tasks_per_head, [&](int64_t task, int) {
    const int64_t head = task / tasks_per_head;
    const int64_t begin = task % tasks_per_head * kRowsPerTask;
    const int64_t end = std::min(len, begin + kRowsPerTask);
    for (int64_t r = begin; r < end; ++r) {
      widen(row_of<BFloat16>(queries, head, r), head_dim, wide + (head * len + r) * head_dim);
    }
  });
  return {wide, len * head_dim, head_dim};
}

}  // namespace kvlab
