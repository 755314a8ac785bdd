// The inner loops of PackedLinear.
//
// Packed weights are panels of 16 output features. A panel holds, for every step along the input
// features, 64 bytes: 16 floats of one input feature, or 16 pairs of bfloat16 of two (zero beyond
// an odd end). Every output starts at zero and takes its steps in order, one fused operation a
// step (two where nothing fuses them; a widened pair: the even feature, then the odd one; with
// tiles sixteen steps, in the processor's order); so its bits depend on nothing but its row and its
// panel.
#pragma once

#include <cstdint>

#include "harness/kernels/element.h"

namespace kvlab {

constexpr int64_t kPanelWidth = 16;
constexpr int64_t kStepBytes = 64;

struct PackedLinearArgs {
  ElementType type = ElementType::kFloat32;
  ElementType y_type = ElementType::kFloat32;
  const char* packed = nullptr;  // aligned to 64
  const float* bias = nullptr;   // padded to whole panels; null: none
  int64_t in_features = 0;
  int64_t out_features = 0;
  int64_t steps = 0;  // in_features, or half of it rounded up
  const char* x = nullptr;
  int64_t x_row_bytes = 0;
  char* y = nullptr;
  int64_t y_row_bytes = 0;
};

// Rows [row_begin, row_end) of panels [panel_begin, panel_end).
using PackedLinearBlock = void (*)(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                                   int64_t panel_begin, int64_t panel_end);
void packed_linear_block_portable(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                                  int64_t panel_begin, int64_t panel_end);
void packed_linear_block_avx2(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                              int64_t panel_begin, int64_t panel_end);
void packed_linear_block_avx512_widen(const PackedLinearArgs& args, int64_t row_begin,
                                      int64_t row_end, int64_t panel_begin, int64_t panel_end);
// As packed_linear_block_avx512_widen where the type is float32 or rows are no whole tiles.
void packed_linear_block_amx(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                             int64_t panel_begin, int64_t panel_end);
void packed_linear_block_avx512(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                                int64_t panel_begin, int64_t panel_end);

}  // namespace kvlab
