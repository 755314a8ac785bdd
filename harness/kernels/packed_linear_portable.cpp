#include "harness/kernels/packed_linear_impl.h"

namespace kvlab {

void packed_linear_block_portable(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                                  int64_t panel_begin, int64_t panel_end) {
  packed_linear_block(args, row_begin, row_end, panel_begin, panel_end);
}

}  // namespace kvlab
