#include "harness/model/prefill_rows.h"

#include <algorithm>
#include <cstring>

#include "harness/base/check.h"
#include "harness/kernels/parallel.h"
#include "harness/kernels/scratch.h"
#include "harness/model/row_kernels.h"

namespace kvlab {
namespace {

// What a block leaves between its steps, next to the weights that pass by: about half of a
// second-level cache.
constexpr int64_t kBlockBytes = int64_t{5} << 18;
constexpr int64_t kMinBlockRows = 48;
constexpr int64_t kMaxBlockRows = 144;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

// Elements of a row between the steps.
struct RowSizes {
  int64_t hidden = 0;   // twice: a norm's output, and what is added to the hidden state
  int64_t gate_up = 0;  // both, then their product
  int64_t qkv = 0;

  int64_t total() const { return 2 * hidden + gate_up + gate_up / 2 + qkv; }
};

RowSizes row_sizes(const PrefillRowsArgs& args) {
  RowSizes sizes;
  if (args.attended != nullptr) {
    sizes.hidden = args.o->out_features();
    sizes.gate_up = args.gate_up->out_features();
  }
  if (args.qkv != nullptr) {
    sizes.hidden = args.qkv->in_features();
    sizes.qkv = args.qkv->out_features();
  }
  return sizes;
}

// One block of rows, on the calling thread.
class Block final {
 public:
  Block(const PrefillRowsArgs& args, const RowSizes& sizes, int64_t begin, int64_t rows)
      : args_(args),
        sizes_(sizes),
        element_(element_size(args.type)),
        begin_(begin),
        rows_(rows),
        hidden_(static_cast<char*>(args.hidden) + begin * sizes.hidden * element_) {
    normed_ = static_cast<char*>(
        thread_scratch(2, rows * sizes.total() * element_ + 5 * kScratchAlignment));
    added_ = after(normed_, sizes.hidden);
    gate_up_ = after(added_, sizes.hidden);
    inner_ = after(gate_up_, sizes.gate_up);
    qkv_ = after(inner_, sizes.gate_up / 2);
  }

  void run() {
    if (args_.attended != nullptr) {
      const char* attended =
          static_cast<const char*>(args_.attended) + begin_ * args_.o->in_features() * element_;
      forward(*args_.o, attended, added_);
      update(args_.updates.o, attended, args_.o->in_features(), added_, sizes_.hidden);
      norm(added_, args_.mlp_norm);
      forward(*args_.gate_up, normed_, gate_up_);
      const int64_t inner_size = sizes_.gate_up / 2;
      update(args_.updates.gate, normed_, sizes_.hidden, gate_up_, sizes_.gate_up);
      update(args_.updates.up, normed_, sizes_.hidden, gate_up_ + inner_size * element_,
             sizes_.gate_up);
      multiply_gates();
      forward(*args_.down, inner_, added_);
      update(args_.updates.down, inner_, inner_size, added_, sizes_.hidden);
    }
    norm(args_.attended != nullptr ? added_ : nullptr, args_.norm);
    if (args_.normed != nullptr) {
      const int64_t row_bytes = sizes_.hidden * element_;
      std::memcpy(static_cast<char*>(args_.normed) + begin_ * row_bytes, normed_,
                  rows_ * row_bytes);
    }
    if (args_.qkv != nullptr) {
      forward(*args_.qkv, normed_, qkv_);
      const int64_t head_bytes = args_.head_dim * element_;
      char* keys = qkv_ + args_.num_heads * head_bytes;
      update(args_.updates.q, normed_, sizes_.hidden, qkv_, sizes_.qkv);
      update(args_.updates.k, normed_, sizes_.hidden, keys, sizes_.qkv);
      update(args_.updates.v, normed_, sizes_.hidden, keys + args_.num_kv_heads * head_bytes,
             sizes_.qkv);
      store_heads();
    }
  }

 private:
  static constexpr int64_t kScratchAlignment = 64;

  char* after(char* place, int64_t size) const {
    return place + round_up(rows_ * size * element_, kScratchAlignment);
  }

  void forward(const PackedLinear& linear, const char* x, char* y) const {
    linear.forward(x, rows_, linear.in_features(), y, linear.out_features(), args_.type);
  }

  // For the rows that have updates. y: the first of its columns in the block's first row; strides
  // count elements from row to row.
  void update(const LowRankUpdate* low_rank, const char* x, int64_t x_stride, char* y,
              int64_t y_stride) const {
    const int64_t skipped = std::max<int64_t>(0, args_.updates_from - begin_);
    if (low_rank == nullptr || skipped >= rows_) {
      return;
    }
    KVLAB_CHECK(low_rank->in_features() == x_stride);
    low_rank->add_to(args_.type, x + skipped * x_stride * element_, rows_ - skipped, x_stride,
                     y + skipped * y_stride * element_, y_stride);
  }

  // hidden += delta, and its norm.
  void norm(const char* delta, const void* weight) const {
    rms_norm_rows({.type = args_.type,
                   .rows = rows_,
                   .size = sizes_.hidden,
                   .eps = args_.eps,
                   .x = hidden_,
                   .delta = delta,
                   .weight = weight,
                   .out = normed_});
  }

  void multiply_gates() const {
    const int64_t size = sizes_.gate_up / 2;
    silu_mul_rows({.type = args_.type,
                   .rows = rows_,
                   .size = size,
                   .gate = gate_up_,
                   .up = gate_up_ + size * element_,
                   .in_row_stride = sizes_.gate_up,
                   .out = inner_});
  }

  MutableHeadRows own_rows(const MutableHeadRows& all) const {
    return {static_cast<char*>(all.data) + begin_ * all.row_stride * element_, all.head_stride,
            all.row_stride};
  }

  void rotate(int64_t first_head, int64_t num_heads, const void* head_norm, bool angles,
              const MutableHeadRows& out) const {
    const int64_t half = args_.head_dim / 2;
    rotate_rows({.type = args_.type,
                 .rows = rows_,
                 .num_heads = num_heads,
                 .head_dim = args_.head_dim,
                 .x = {qkv_ + first_head * args_.head_dim * element_, args_.head_dim, sizes_.qkv},
                 .out = own_rows(out),
                 .cos = angles ? args_.cos + begin_ * half : nullptr,
                 .sin = angles ? args_.sin + begin_ * half : nullptr,
                 .norm_weight = head_norm,
                 .eps = args_.eps});
  }

  void store_heads() const {
    rotate(0, args_.num_heads, args_.q_norm, args_.rotate_queries, args_.queries);
    rotate(args_.num_heads, args_.num_kv_heads, args_.k_norm, true, args_.keys);
    const int64_t head_bytes = args_.head_dim * element_;
    const char* from = qkv_ + (args_.num_heads + args_.num_kv_heads) * head_bytes;
    const MutableHeadRows values = own_rows(args_.values);
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t head = 0; head < args_.num_kv_heads; ++head) {
        std::memcpy(static_cast<char*>(values.data) +
                        (head * values.head_stride + row * values.row_stride) * element_,
                    from + row * sizes_.qkv * element_ + head * head_bytes, head_bytes);
      }
    }
  }

  const PrefillRowsArgs& args_;
  const RowSizes& sizes_;
  const int64_t element_;
  const int64_t begin_;
  const int64_t rows_;
  char* hidden_;
  char* normed_;
  char* added_;
  char* gate_up_;
  char* inner_;
  char* qkv_;
};

}  // namespace

void prefill_rows(const PrefillRowsArgs& args) {
  const RowSizes sizes = row_sizes(args);
  KVLAB_CHECK(sizes.hidden > 0 && args.rows >= 1);
  const int64_t threads = kernel_threads();
  const int64_t fitting = std::clamp(kBlockBytes / (sizes.total() * element_size(args.type)),
                                     kMinBlockRows, kMaxBlockRows);
  // Few rows: one block, whose steps divide their own work over the threads.
  const int64_t blocks =
      args.rows < kMinBlockRows * threads ? 1 : round_up(divide_up(args.rows, fitting), threads);
  const int64_t block_rows = divide_up(args.rows, blocks);
  parallel_for(divide_up(args.rows, block_rows), [&](int64_t task, int) {
    const int64_t begin = task * block_rows;
    Block(args, sizes, begin, std::min(block_rows, args.rows - begin)).run();
  });
}

}  // namespace kvlab
