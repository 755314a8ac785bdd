#include <immintrin.h>

#include "harness/kernels/amx_tiles.h"
#include "methods/attention_mass/attention_mass_kernels.h"
#include "methods/attention_mass/sums_of_keys_avx512.h"

namespace kvlab {
namespace {

class Block final : public avx512::SumsOfKeys<Block> {
  friend class avx512::SumsOfKeys<Block>;

 public:
  using SumsOfKeys::SumsOfKeys;

 private:
  void add_rows(int64_t row, int64_t end, int64_t key, __m512 (&sums)[2]) {
    const int64_t row_bytes = args_.head_dim * 2;
    const int64_t stride_bytes = args_.queries.row_stride * 2;
    const char* queries =
        static_cast<const char*>(args_.queries.data) + block_.head * args_.queries.head_stride * 2;
    const char* panels = block_.key_panels + key * row_bytes;
    alignas(64) float scores[amx::kTileRows * 32];
    for (; row < end; row += amx::kTileRows) {
      const int64_t count = end - row < amx::kTileRows ? end - row : amx::kTileRows;
      registers_.configure(count, count);
      amx::make_visible(panels);
      amx::multiply_two_panels(queries + row * stride_bytes, stride_bytes, row_bytes, panels,
                               scores, 32 * 4);
      const bool masked = is_masked(row, count, key);
      for (int64_t r = 0; r < count; ++r) {
        add_weights(row + r, key, masked, _mm512_load_ps(scores + r * 32),
                    _mm512_load_ps(scores + r * 32 + 16), sums);
      }
    }
  }

  amx::TileRegisters registers_;
};

}  // namespace

void sums_block_amx(const SumsBlock& block) {
  if (block.args->type == ElementType::kFloat32) {
    sums_block_avx512(block);
  } else {
    Block(block).run();
  }
}

}  // namespace kvlab
