#include "harness/kernels/prefill_attention.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/kernels/dispatch.h"
#include "harness/kernels/parallel.h"
#include "harness/kernels/prefill_attention_kernels.h"
#include "harness/kernels/scratch.h"

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

// [num_kv_heads, kv_len rounded up to a pair, head_dim] in the caller's scratch memory.
const BFloat16* pack_all_values(const PrefillAttentionArgs& args, int64_t first_key,
                                int64_t head_elements) {
  auto* pairs = static_cast<BFloat16*>(
      thread_scratch(0, args.num_kv_heads * head_elements * sizeof(BFloat16)));
  const int64_t tasks_per_head = divide_up(args.kv_len - first_key, kPackedKeysPerTask);
  parallel_for(args.num_kv_heads * tasks_per_head, [&](int64_t task, int) {
    const int64_t kv_head = task / tasks_per_head;
    const int64_t begin = first_key + task % tasks_per_head * kPackedKeysPerTask;
    pack_values(args, kv_head, begin, std::min(args.kv_len, begin + kPackedKeysPerTask),
                pairs + kv_head * head_elements);
  });
  return pairs;
}

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
      args.head_dim % 16 == 0 ? KVLAB_KERNEL(prefill_block) : prefill_block_portable;
  const bool needs_pairs =
      args.type == ElementType::kBFloat16 && function != prefill_block_portable;
  const int64_t head_elements = divide_up(args.kv_len, 2) * 2 * args.head_dim;
  int64_t first_key = 0;  // that any query sees, at the start of a block
  if (args.sliding_window > 0) {
    first_key = std::max<int64_t>(0, args.kv_len - args.q_len - args.sliding_window + 1) /
                kKeyBlock * kKeyBlock;
  }
  const BFloat16* pairs = needs_pairs ? pack_all_values(args, first_key, head_elements) : nullptr;
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
    block.value_pairs = needs_pairs ? pairs + block.kv_head * head_elements : nullptr;
    block.scratch = static_cast<float*>(
        thread_scratch(1, prefill_scratch_floats(args.head_dim) * sizeof(float)));
    function(block);
  });
}

}  // namespace kvlab
