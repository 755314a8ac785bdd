#include "methods/attention_mass/key_panels.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/kernels/parallel.h"
#include "methods/attention_mass/attention_mass_kernels.h"

namespace kvlab {

#if defined(KVLAB_AVX512)

void pack_keys_of_heads(ElementType type, const HeadRows& keys, int64_t num_kv_heads,
                        int64_t head_dim, int64_t len, char* panels) {
  constexpr int64_t kKeysPerTask = 512;
  const int64_t tasks_per_head = (len + kKeysPerTask - 1) / kKeysPerTask;
  parallel_for(num_kv_heads * tasks_per_head, [&](int64_t task, int) {
    const int64_t kv_head = task / tasks_per_head;
    const int64_t begin = task % tasks_per_head * kKeysPerTask;
    const auto* first = static_cast<const char*>(keys.data) +
                        (kv_head * keys.head_stride + begin * keys.row_stride) * element_size(type);
    pack_key_panels_avx512(type, first, keys.row_stride, head_dim,
                           std::min(kKeysPerTask, len - begin),
                           panels + kv_head * key_panel_bytes(type, head_dim, len) +
                               begin * head_dim * element_size(type));
  });
}

#else

void pack_keys_of_heads(ElementType, const HeadRows&, int64_t, int64_t, int64_t, char*) {
  KVLAB_CHECK(false);  // only the AVX-512 loops take panels
}

#endif

}  // namespace kvlab
