#include "methods/attention_mass/attention_mass.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/kernels/dispatch.h"
#include "harness/kernels/parallel.h"
#include "harness/kernels/scratch.h"
#include "methods/attention_mass/attention_mass_kernels.h"
#include "methods/attention_mass/key_panels.h"

namespace kvlab {
namespace {

// A head's rows are shared out to at most so many tasks; by the number of rows alone, since each
// task's partial result is a rounding of its own.
constexpr int64_t kMaxParts = 4;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Joins the parts [num_parts, num_keys] of one head, the first of which lies in `mass` already.
void join_parts(const AttentionMassArgs& args, const float* parts, int64_t num_parts, float* mass) {
  const float divisor =
      args.reduction == RowReduction::kMean ? static_cast<float>(args.num_rows) : 1.0F;
  for (int64_t part = 1; part < num_parts; ++part) {
    const float* other = parts + (part - 1) * args.num_keys;
    if (args.reduction == RowReduction::kMax) {
#pragma omp simd
      for (int64_t key = 0; key < args.num_keys; ++key) {
        mass[key] = larger_or_broken(mass[key], other[key]);
      }
    } else {
#pragma omp simd
      for (int64_t key = 0; key < args.num_keys; ++key) {
        mass[key] += other[key];
      }
    }
  }
  if (args.reduction == RowReduction::kMean) {
#pragma omp simd
    for (int64_t key = 0; key < args.num_keys; ++key) {
      mass[key] /= divisor;
    }
  }
}

}  // namespace

void attention_mass(const AttentionMassArgs& args) {
  KVLAB_CHECK(args.num_kv_heads >= 1 && args.num_heads % args.num_kv_heads == 0);
  KVLAB_CHECK(args.head_dim >= 1 && args.head_dim <= 256 && args.num_rows >= 1);
  KVLAB_CHECK(args.scale > 0);
  if (cpu_level() == CpuLevel::kReference) {
    attention_mass_reference(args);
    return;
  }
  const MassBlockFunction function = own_loops_take(args.head_dim)
                                         ? KVLAB_TILE_KERNEL(mass_block)
                                         : KVLAB_SHARED_KERNEL(mass_block);
  const int64_t group_size = args.num_heads / args.num_kv_heads;
  const int64_t num_blocks = divide_up(args.num_rows, kMassRows);
  const int64_t num_parts = std::min(num_blocks, kMaxParts);

  // Scratch of the caller: the parts but the first, then the packed keys.
  const int64_t part_bytes =
      divide_up((num_parts - 1) * args.num_heads * args.num_keys * 4, 64) * 64;
  AttentionMassArgs products = args;
  products.type = product_type(args.type, args.head_dim);
  products.queries =
      queries_for_products(args.type, args.queries, args.num_heads, args.num_rows, args.head_dim);
  const int64_t key_bytes = key_panel_bytes(products.type, args.head_dim, args.num_keys);
  const int64_t extra_bytes = key_panel_bytes(products.type, args.head_dim, args.num_extra_keys);
  auto* scratch = static_cast<char*>(
      thread_scratch(0, part_bytes + args.num_kv_heads * (key_bytes + extra_bytes)));
  auto* parts = reinterpret_cast<float*>(scratch);
  char* key_panels = scratch + part_bytes;
  char* extra_panels = key_panels + args.num_kv_heads * key_bytes;
  pack_keys_of_heads(args.type, products.type, args.keys, args.num_kv_heads, args.head_dim,
                     args.num_keys, key_panels);
  pack_keys_of_heads(args.type, products.type, args.extra_keys, args.num_kv_heads, args.head_dim,
                     args.num_extra_keys, extra_panels);
  const auto part_of = [&](int64_t head, int64_t part) {
    return part == 0 ? args.mass + head * args.num_keys
                     : parts + (head * (num_parts - 1) + part - 1) * args.num_keys;
  };
  parallel_for(args.num_heads * num_parts, [&](int64_t task, int) {
    const int64_t part = task % num_parts;
    MassBlock block;
    block.args = &products;
    block.head = task / num_parts;
    block.kv_head = block.head / group_size;
    block.key_panels = key_panels + block.kv_head * key_bytes;
    block.extra_panels = extra_panels + block.kv_head * extra_bytes;
    block.scores =
        static_cast<float*>(thread_scratch(1, kMassRows * mass_score_stride(args) * sizeof(float)));
    block.mass = part_of(block.head, part);
    std::fill(block.mass, block.mass + args.num_keys, 0.0F);
    const int64_t end_block = num_blocks * (part + 1) / num_parts;
    for (int64_t b = num_blocks * part / num_parts; b < end_block; ++b) {
      // Blocks of nearly equal height: 32 rows are 10 + 11 + 11.
      block.row_begin = args.num_rows * b / num_blocks;
      block.row_count = args.num_rows * (b + 1) / num_blocks - block.row_begin;
      function(block);
    }
  });
  if (num_parts > 1 || args.reduction == RowReduction::kMean) {
    parallel_for(args.num_heads, [&](int64_t head, int) {
      join_parts(args, num_parts > 1 ? part_of(head, 1) : nullptr, num_parts, part_of(head, 0));
    });
  }
}

}  // namespace kvlab
