#include "methods/attention_mass/key_panels.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/kernels/cpu_level.h"
#include "harness/kernels/parallel.h"
#include "harness/kernels/scratch.h"
#include "harness/kernels/widen.h"
#include "methods/attention_mass/attention_mass_kernels.h"

namespace kvlab {

namespace {

// Whole panels of floats; keys beyond `len` are zero.
template <typename Element>
void pack_wide(const Element* keys, int64_t row_stride, int64_t head_dim, int64_t len,
               float* panels) {
  for (int64_t begin = 0; begin < len; begin += 16, panels += 16 * head_dim) {
    const int64_t count = std::min<int64_t>(16, len - begin);
    if (count < 16) {
      std::fill_n(panels, 16 * head_dim, 0.0F);
    }
    for (int64_t i = 0; i < count; ++i) {
      const Element* key = keys + (begin + i) * row_stride;
      for (int64_t d = 0; d < head_dim; ++d) {
        panels[16 * d + i] = to_float(key[d]);
      }
    }
  }
}

void pack_keys(ElementType type, ElementType packed_type, const void* keys, int64_t row_stride,
               int64_t head_dim, int64_t len, char* panels) {
#if defined(KVLAB_X86_64)
  if (own_loops_take(head_dim)) {
    pack_key_panels_avx512(type, packed_type, keys, row_stride, head_dim, len, panels);
    return;
  }
#endif
  KVLAB_CHECK(packed_type == ElementType::kFloat32);
  auto* floats = reinterpret_cast<float*>(panels);
  if (type == ElementType::kFloat32) {
    pack_wide(static_cast<const float*>(keys), row_stride, head_dim, len, floats);
  } else {
    pack_wide(static_cast<const BFloat16*>(keys), row_stride, head_dim, len, floats);
  }
}

}  // namespace

void pack_keys_of_heads(ElementType type, ElementType packed_type, const HeadRows& keys,
                        int64_t num_kv_heads, int64_t head_dim, int64_t len, char* panels) {
  constexpr int64_t kKeysPerTask = 512;
  const int64_t tasks_per_head = (len + kKeysPerTask - 1) / kKeysPerTask;
  parallel_for(num_kv_heads * tasks_per_head, [&](int64_t task, int) {
    const int64_t kv_head = task / tasks_per_head;
    const int64_t begin = task % tasks_per_head * kKeysPerTask;
    const auto* first = static_cast<const char*>(keys.data) +
                        (kv_head * keys.head_stride + begin * keys.row_stride) * element_size(type);
    pack_keys(type, packed_type, first, keys.row_stride, head_dim,
              std::min(kKeysPerTask, len - begin),
              panels + kv_head * key_panel_bytes(packed_type, head_dim, len) +
                  begin * head_dim * element_size(packed_type));
  });
}

bool own_loops_take(int64_t head_dim) {
  return cpu_level() >= CpuLevel::kAvx512 && head_dim % 16 == 0;
}

ElementType product_type(ElementType type, int64_t head_dim) {
  const bool pairs = own_loops_take(head_dim) && cpu_level() != CpuLevel::kAvx512Widen &&
                     (cpu_level() != CpuLevel::kAmx || head_dim % kTileDepth == 0);
  return pairs ? type : ElementType::kFloat32;
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
