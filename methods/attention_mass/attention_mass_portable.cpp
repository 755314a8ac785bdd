#include <algorithm>
#include <limits>

#include "harness/kernels/portable_math.h"
#include "methods/attention_mass/attention_mass_kernels.h"

namespace kvlab {
namespace {

template <typename Element>
float dot(const Element* a, const Element* b, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t d = 0; d < n; ++d) {
    sum += to_float(a[d]) * to_float(b[d]);
  }
  return sum;
}

// Scores of keys [begin, end), into scores[begin..]; returns the largest, or `largest`.
template <typename Element>
float score_keys(const AttentionMassArgs& args, const Element* query, const HeadRows& keys,
                 int64_t kv_head, int64_t begin, int64_t end, float largest, float* scores) {
  for (int64_t key = begin; key < end; ++key) {
    scores[key] = dot(query, row_of<Element>(keys, kv_head, key), args.head_dim) * args.scale;
    largest = std::max(largest, scores[key]);
  }
  return largest;
}

float soften(float* scores, int64_t begin, int64_t end, float largest) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t key = begin; key < end; ++key) {
    scores[key] = exp_portable(scores[key] - largest);
    sum += scores[key];
  }
  return sum;
}

template <typename Element>
void run_row(const MassBlock& block, int64_t row) {
  const AttentionMassArgs& args = *block.args;
  const int64_t begin = args.first_visible != nullptr ? args.first_visible[row] : 0;
  const int64_t end = args.visible != nullptr ? args.visible[row] : args.num_keys;
  const int64_t extra_end =
      args.extra_visible != nullptr ? args.extra_visible[row] : args.num_extra_keys;
  if (begin >= end) {
    return;
  }
  const Element* query = row_of<Element>(args.queries, block.head, row);
  float* extra = block.scores + args.num_keys;
  float largest = score_keys(args, query, args.keys, block.kv_head, begin, end,
                             -std::numeric_limits<float>::infinity(), block.scores);
  largest = score_keys(args, query, args.extra_keys, block.kv_head, 0, extra_end, largest, extra);
  const float inverse =
      1.0F / (soften(block.scores, begin, end, largest) + soften(extra, 0, extra_end, largest));
  float* mass = block.mass;
  const float* scores = block.scores;
  if (args.reduction == RowReduction::kMax) {
    for (int64_t key = begin; key < end; ++key) {
      mass[key] = std::max(mass[key], scores[key] * inverse);
    }
  } else {
#pragma omp simd
    for (int64_t key = begin; key < end; ++key) {
      mass[key] += scores[key] * inverse;
    }
  }
}

}  // namespace

void mass_block_portable(const MassBlock& block) {
  for (int64_t r = 0; r < block.row_count; ++r) {
    if (block.args->type == ElementType::kFloat32) {
      run_row<float>(block, block.row_begin + r);
    } else {
      run_row<BFloat16>(block, block.row_begin + r);
    }
  }
}

}  // namespace kvlab
