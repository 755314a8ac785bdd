// Random attention-mass problems for the tests of the CPU's and the GPU's kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "methods/attention_mass/attention_mass.h"
#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {

struct MassProblem {
  AttentionMassArgs args;  // pointers are set by bind()
  Values queries{ElementType::kFloat32, 0};
  Values keys{ElementType::kFloat32, 0};
  Values extra_keys{ElementType::kFloat32, 0};
  std::vector<int64_t> first_visible, visible, extra_visible;
  std::vector<float> mass;  // [num_heads, num_keys]

  void bind() {
    args.queries.data = queries.data();
    args.keys.data = keys.data();
    args.extra_keys.data = extra_keys.data();
    args.first_visible = first_visible.empty() ? nullptr : first_visible.data();
    args.visible = visible.empty() ? nullptr : visible.data();
    args.extra_visible = extra_visible.empty() ? nullptr : extra_visible.data();
    mass.assign(args.num_heads * args.num_keys, -1.0F);  // must be overwritten
    args.mass = mass.data();
  }
};

// What the problems of one kernel are drawn from, its blocks' borders among them.
struct MassProblemRange {
  std::vector<int64_t> group_sizes;
  std::vector<int64_t> head_dims;
  std::vector<int64_t> row_counts;
  std::vector<int64_t> key_counts;
  int64_t longest = 1;    // further counts of keys are drawn up to this
  int64_t num_keys = 0;   // always so many; 0: drawn
  int64_t alignment = 1;  // of strides, in elements
};

inline HeadRows random_head_rows(std::mt19937_64& random, int64_t rows, int64_t head_dim,
                                 int64_t alignment) {
  HeadRows result;
  result.row_stride = head_dim + alignment * pick(random, 0, 3);
  result.head_stride = rows * result.row_stride + alignment * pick(random, 0, 9);
  return result;
}

inline int64_t pick_from(std::mt19937_64& random, const std::vector<int64_t>& choices) {
  return choices[static_cast<size_t>(pick(random, 0, static_cast<int64_t>(choices.size()) - 1))];
}

inline MassProblem random_mass_problem(std::mt19937_64& random, const MassProblemRange& range) {
  MassProblem p;
  AttentionMassArgs& a = p.args;
  a.type = pick_of(random, {ElementType::kFloat32, ElementType::kBFloat16});
  a.num_kv_heads = pick(random, 1, 2);
  a.num_heads = a.num_kv_heads * pick_from(random, range.group_sizes);
  a.head_dim = pick_from(random, range.head_dims);
  a.num_rows = pick(random, 0, 4) == 0 ? pick(random, 1, 70) : pick_from(random, range.row_counts);
  a.num_keys = pick(random, 0, 4) == 0 ? pick(random, 1, std::max<int64_t>(1, range.longest))
                                       : pick_from(random, range.key_counts);
  a.num_keys = range.num_keys > 0 ? range.num_keys : a.num_keys;
  a.num_extra_keys = pick(random, 0, 1) == 0 ? 0 : pick(random, 1, 70);
  a.scale = pick_of(random, {0.5F, 1.0F, 2.0F}) / std::sqrt(static_cast<float>(a.head_dim));
  a.reduction = pick_of(random, {RowReduction::kSum, RowReduction::kMean, RowReduction::kMax});
  a.queries = random_head_rows(random, a.num_rows, a.head_dim, range.alignment);
  a.keys = random_head_rows(random, a.num_keys, a.head_dim, range.alignment);
  a.extra_keys = random_head_rows(random, a.num_extra_keys, a.head_dim, range.alignment);
  p.queries = Values::random(a.type, a.num_heads * a.queries.head_stride, random);
  p.keys = Values::random(a.type, a.num_kv_heads * a.keys.head_stride, random);
  p.extra_keys = Values::random(a.type, a.num_kv_heads * a.extra_keys.head_stride, random);
  const bool limits_first = pick(random, 0, 3) == 0;
  const bool limits_last = pick(random, 0, 1) == 0;
  const bool limits_extra = pick(random, 0, 1) == 0;
  for (int64_t row = 0; row < a.num_rows; ++row) {
    const int64_t last = limits_last ? pick(random, 0, a.num_keys) : a.num_keys;
    if (limits_last) {
      p.visible.push_back(last);
    }
    if (limits_first) {
      p.first_visible.push_back(pick(random, 0, last));
    }
    if (limits_extra) {
      p.extra_visible.push_back(pick(random, 0, a.num_extra_keys));
    }
  }
  return p;
}

}  // namespace kvlab
