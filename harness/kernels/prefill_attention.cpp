#include "harness/kernels/prefill_attention.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/kernels/dispatch.h"
#include "harness/kernels/parallel.h"
#include "harness/kernels/prefill_attention_kernels.h"
#include "harness/kernels/scratch.h"
#include "harness/kernels/widen.h"

namespace kvlab {
namespace {

constexpr int64_t kPackedKeysPerTask = 512;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// One task's pairs of values; see PrefillBlock::value_pairs.
void pack_values(const PrefillAttentionArgs& args, int64_t kv_head, int64_t begin, int64_t end,
                 BFloat16* pairs) {
  for (int64_t key = begin; key < end; key += 2) {
    const BFloat16* even = row_of<BFloat16>(args.values, kv_head, key);
    const BFloat16* odd =
        key + 1 < args.kv_len ? row_of<BFloat16>(args.values, kv_head, key + 1) : nullptr;
    BFloat16* place = pairs + key * args.head_dim;
    if (odd != nullptr) {
      for (int64_t d = 0; d < args.head_dim; ++d) {
        place[2 * d] = even[d];
        place[2 * d + 1] = odd[d];
      }
    } else {
      for (int64_t d = 0; d < args.head_dim; ++d) {
        place[2 * d] = even[d];
        place[2 * d + 1] = BFloat16{};
      }
    }
  }
}

// One task's rows as floats.
void widen_rows(const HeadRows& rows, int64_t head_dim, int64_t kv_head, int64_t begin, int64_t end,
                float* wide) {
  for (int64_t key = begin; key < end; ++key) {
    widen(row_of<BFloat16>(rows, kv_head, key), head_dim, wide + key * head_dim);
  }
}

// What the inner loops want of keys and values beside the arguments, in the caller's scratch
// memory.
class PackedKeys final {
 public:
  enum class Kind { kNone, kPairs, kWide };

  PackedKeys(const PrefillAttentionArgs& args, Kind kind, int64_t first_key)
      : kind_(kind), head_elements_(divide_up(args.kv_len, 2) * 2 * args.head_dim) {
    if (kind_ == Kind::kNone) {
      return;
    }
    const int64_t elements = args.num_kv_heads * head_elements_;
    data_ = thread_scratch(
        0, kind_ == Kind::kPairs ? elements * sizeof(BFloat16) : 2 * elements * sizeof(float));
    const int64_t tasks_per_head = divide_up(args.kv_len - first_key, kPackedKeysPerTask);
    parallel_for(args.num_kv_heads * tasks_per_head, [&](int64_t task, int) {
      const int64_t kv_head = task / tasks_per_head;
      const int64_t begin = first_key + task % tasks_per_head * kPackedKeysPerTask;
      const int64_t end = std::min(args.kv_len, begin + kPackedKeysPerTask);
      if (kind_ == Kind::kPairs) {
        pack_values(args, kv_head, begin, end, pairs(kv_head));
      } else {
        widen_rows(args.keys, args.head_dim, kv_head, begin, end, wide_keys(kv_head));
        widen_rows(args.values, args.head_dim, kv_head, begin, end, wide_values(kv_head));
      }
    });
  }

  void give_to(PrefillBlock& block) const {
    if (kind_ == Kind::kPairs) {
      block.value_pairs = pairs(block.kv_head);
    } else if (kind_ == Kind::kWide) {
      block.wide_keys = wide_keys(block.kv_head);
      block.wide_values = wide_values(block.kv_head);
    }
  }

 private:
  BFloat16* pairs(int64_t kv_head) const {
    return static_cast<BFloat16*>(data_) + kv_head * head_elements_;
  }
  float* wide_keys(int64_t kv_head) const {
    return static_cast<float*>(data_) + 2 * kv_head * head_elements_;
  }
  float* wide_values(int64_t kv_head) const { return wide_keys(kv_head) + head_elements_; }

  const Kind kind_;
  const int64_t head_elements_;
  void* data_ = nullptr;
};

}  // namespace

void prefill_attention(const PrefillAttentionArgs& args) {
  KVLAB_CHECK(args.num_kv_heads >= 1 && args.num_heads % args.num_kv_heads == 0);
  KVLAB_CHECK(args.kv_len >= args.q_len && args.head_dim >= 1 && args.head_dim <= 256);
  KVLAB_CHECK(args.scale > 0);
  if (cpu_level() == CpuLevel::kReference) {
    prefill_attention_reference(args);
    return;
  }
  const PrefillBlockFunction function =
      args.head_dim % 16 == 0 ? KVLAB_WIDE_KERNEL(prefill_block) : prefill_block_portable;
  auto kind = PackedKeys::Kind::kNone;
  if (args.type == ElementType::kBFloat16 && function != prefill_block_portable) {
    kind =
        cpu_level() == CpuLevel::kAvx512Widen ? PackedKeys::Kind::kWide : PackedKeys::Kind::kPairs;
  }
  int64_t first_key = 0;  // that any query sees, at the start of a block
  if (args.sliding_window > 0) {
    first_key = std::max<int64_t>(0, args.kv_len - args.q_len - args.sliding_window + 1) /
                kKeyBlock * kKeyBlock;
  }
  const PackedKeys packed(args, kind, first_key);
  const int64_t group_size = args.num_heads / args.num_kv_heads;
  const int64_t blocks = divide_up(args.q_len, kQueryBlock);
  // The longest rows first, so that the threads end together.
  parallel_for(args.num_heads * blocks, [&](int64_t task, int) {
    PrefillBlock block;
    block.args = &args;
    block.head = task % args.num_heads;
    block.kv_head = block.head / group_size;
    block.q_begin = (blocks - 1 - task / args.num_heads) * kQueryBlock;
    block.q_count = std::min(kQueryBlock, args.q_len - block.q_begin);
    packed.give_to(block);
    block.scratch = static_cast<float*>(
        thread_scratch(1, prefill_scratch_floats(args.head_dim) * sizeof(float)));
    function(block);
  });
}

}  // namespace kvlab
