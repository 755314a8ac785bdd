#include <immintrin.h>

#include "harness/kernels/amx_tiles.h"
#include "methods/attention_mass/attention_mass_kernels.h"
#include "methods/attention_mass/mass_rows_avx512.h"

namespace kvlab {

void mass_block_amx(const MassBlock& block) {
  const AttentionMassArgs& args = *block.args;
  if (args.type == ElementType::kFloat32) {
    mass_block_avx512(block);
    return;
  }
  amx::TileRegisters registers;
  registers.configure(block.row_count, block.row_count);
  const int64_t query_bytes = args.queries.row_stride * 2;
  const char* queries = static_cast<const char*>(args.queries.data) +
                        block.head * args.queries.head_stride * 2 + block.row_begin * query_bytes;
  const int64_t row_bytes = args.head_dim * 2;
  amx::make_visible(queries);
  avx512::add_mass_of_rows(
      block, [&](const char* panels, const avx512::Range& keys, float* scores, int64_t stride) {
        amx::make_visible(panels);
        for (int64_t key = keys.begin / 32 * 32; key < keys.end; key += 32) {
          amx::multiply_two_panels(queries, query_bytes, row_bytes, panels + key * row_bytes,
                                   scores + key, stride * 4);
        }
      });
}

}  // namespace kvlab
