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

// How the inner loops want keys and values beside the arguments.
enum class Packing { kNone, kPairs, kWide, kTiles };

// The inner loops of a call.
struct Loops {
  PrefillBlockFunction function = nullptr;
  Packing packing = Packing::kNone;
  int64_t query_block = kQueryBlock;
};

Loops loops_for(const PrefillAttentionArgs& args) {
  const bool bfloat16 = args.type == ElementType::kBFloat16;
  const Loops shared = {KVLAB_SHARED_KERNEL(prefill_block),
                        bfloat16 ? Packing::kWide : Packing::kNone};
  if (args.head_dim % 16 != 0) {
    return shared;
  }
#if defined(KVLAB_X86_64)
  switch (cpu_level()) {
    case CpuLevel::kAmx:
      if (bfloat16 && args.head_dim % kTileDepth == 0) {
        return {prefill_block_amx, Packing::kTiles, kTileQueryBlock};
      }
      [[fallthrough]];
    case CpuLevel::kAvx512Widen:
      return {prefill_block_avx512_widen, bfloat16 ? Packing::kWide : Packing::kNone};
    case CpuLevel::kAvx512:
      return {prefill_block_avx512, bfloat16 ? Packing::kPairs : Packing::kNone};
    default:
      break;
  }
#endif
  return shared;
}

// Keys and values packed, in the caller's scratch memory.
class PackedKeys final {
 public:
  PackedKeys(const PrefillAttentionArgs& args, Packing packing, int64_t first_key)
      : packing_(packing),
        head_elements_(divide_up(args.kv_len, kKeyBlock) * kKeyBlock * args.head_dim),
        num_kv_heads_(args.num_kv_heads) {
    if (packing_ == Packing::kNone) {
      return;
    }
    const int64_t elements = args.num_kv_heads * head_elements_;
    const int64_t last_keys =
        packing_ == Packing::kTiles ? args.num_kv_heads * kKeyBlock * args.head_dim : 0;
    data_ =
        thread_scratch(0, packing_ == Packing::kWide ? 2 * elements * sizeof(float)
                                                     : (elements + last_keys) * sizeof(BFloat16));
    const int64_t tasks_per_head = divide_up(args.kv_len - first_key, kPackedKeysPerTask);
    parallel_for(args.num_kv_heads * tasks_per_head, [&](int64_t task, int) {
      const int64_t kv_head = task / tasks_per_head;
      const int64_t begin = first_key + task % tasks_per_head * kPackedKeysPerTask;
      const int64_t end = std::min(args.kv_len, begin + kPackedKeysPerTask);
      if (packing_ == Packing::kPairs) {
        pack_values(args, kv_head, begin, end, head(kv_head));
      } else if (packing_ == Packing::kTiles) {
        pack_tiles(args, kv_head, begin, end);
      } else {
        widen_rows(args.keys, args.head_dim, kv_head, begin, end, wide_keys(kv_head));
        widen_rows(args.values, args.head_dim, kv_head, begin, end, wide_values(kv_head));
      }
    });
  }

  void give_to(PrefillBlock& block) const {
    switch (packing_) {
      case Packing::kNone:
        break;
      case Packing::kPairs:
        block.value_pairs = head(block.kv_head);
        break;
      case Packing::kWide:
        block.wide_keys = wide_keys(block.kv_head);
        block.wide_values = wide_values(block.kv_head);
        break;
      case Packing::kTiles:
        block.value_tiles = head(block.kv_head);
        block.last_keys = last_keys(block.kv_head, block.args->head_dim);
        break;
    }
  }

 private:
  void pack_tiles(const PrefillAttentionArgs& args, int64_t kv_head, int64_t begin, int64_t end) {
#if defined(KVLAB_X86_64)
    pack_value_tiles_amx(args, kv_head, begin, divide_up(end, kKeyBlock) * kKeyBlock,
                         head(kv_head));
    const int64_t last = end / kKeyBlock * kKeyBlock;
    if (last == end) {
      return;
    }
    BFloat16* place = last_keys(kv_head, args.head_dim);
    for (int64_t key = last; key < end; ++key) {
      std::copy_n(row_of<BFloat16>(args.keys, kv_head, key), args.head_dim,
                  place + (key - last) * args.head_dim);
    }
    std::fill(place + (end - last) * args.head_dim, place + kKeyBlock * args.head_dim, BFloat16{});
#else
    (void)args, (void)kv_head, (void)begin, (void)end;
    KVLAB_CHECK(false);  // only the tiles' loops take them
#endif
  }

  BFloat16* head(int64_t kv_head) const {
    return static_cast<BFloat16*>(data_) + kv_head * head_elements_;
  }
  BFloat16* last_keys(int64_t kv_head, int64_t head_dim) const {
    return head(num_kv_heads_) + kv_head * kKeyBlock * head_dim;
  }
  float* wide_keys(int64_t kv_head) const {
    return static_cast<float*>(data_) + 2 * kv_head * head_elements_;
  }
  float* wide_values(int64_t kv_head) const { return wide_keys(kv_head) + head_elements_; }

  const Packing packing_;
  const int64_t head_elements_;
  const int64_t num_kv_heads_;
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
  const Loops loops = loops_for(args);
  int64_t first_key = 0;  // that any query sees, at the start of a block
  if (args.sliding_window > 0) {
    first_key = std::max<int64_t>(0, args.kv_len - args.q_len - args.sliding_window + 1) /
                kKeyBlock * kKeyBlock;
  }
  const PackedKeys packed(args, loops.packing, first_key);
  const int64_t group_size = args.num_heads / args.num_kv_heads;
  const int64_t blocks = divide_up(args.q_len, loops.query_block);
  // The longest rows first, so that the threads end together.
  parallel_for(args.num_heads * blocks, [&](int64_t task, int) {
    PrefillBlock block;
    block.args = &args;
    block.head = task % args.num_heads;
    block.kv_head = block.head / group_size;
    block.q_begin = (blocks - 1 - task / args.num_heads) * loops.query_block;
    block.q_count = std::min(loops.query_block, args.q_len - block.q_begin);
    packed.give_to(block);
    block.scratch = static_cast<float*>(
        thread_scratch(1, prefill_scratch_floats(args.head_dim) * sizeof(float)));
    loops.function(block);
  });
}

}  // namespace kvlab
