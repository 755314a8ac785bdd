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

}  // namespace

void add_attention_sums(const AttentionSumsArgs& args) {
  KVLAB_CHECK(args.num_kv_heads >= 1 && args.num_heads % args.num_kv_heads == 0);
  KVLAB_CHECK(args.head_dim >= 1 && args.head_dim <= 256);
  KVLAB_CHECK(args.rows_follow_keys || args.kv_len >= args.q_len);
  if (cpu_level() == CpuLevel::kReference) {
    add_attention_sums_reference(args);
    return;
  }
  const SumsBlockFunction function = own_loops_take(args.head_dim)
                                         ? KVLAB_TILE_KERNEL(sums_block)
                                         : KVLAB_SHARED_KERNEL(sums_block);
  const int64_t group_size = args.num_heads / args.num_kv_heads;
  AttentionSumsArgs products = args;
  products.type = product_type(args.type, args.head_dim);
  products.queries =
      queries_for_products(args.type, args.queries, args.num_heads, args.q_len, args.head_dim);
  const int64_t key_bytes = key_panel_bytes(products.type, args.head_dim, args.kv_len);
  auto* key_panels = static_cast<char*>(thread_scratch(0, args.num_kv_heads * key_bytes));
  pack_keys_of_heads(args.type, products.type, args.keys, args.num_kv_heads, args.head_dim,
                     args.kv_len, key_panels);
  const int64_t tasks_per_head = (args.kv_len + kKeysPerTask - 1) / kKeysPerTask;
  // Early keys are seen by most rows: the longest tasks come first.
  parallel_for(args.num_heads * tasks_per_head, [&](int64_t task, int) {
    SumsBlock block;
    block.args = &products;
    block.head = task % args.num_heads;
    block.kv_head = block.head / group_size;
    block.key_begin = task / args.num_heads * kKeysPerTask;
    block.key_end = std::min(args.kv_len, block.key_begin + kKeysPerTask);
    block.key_panels = key_panels + block.kv_head * key_bytes;
    function(block);
  });
}

}  // namespace kvlab
