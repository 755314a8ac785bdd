// Group reduction and pooling of one score, with the additions in the order of score_reduction.cpp,
// so that equal scores give equal bits on either side.
#pragma once

#include "harness/kernels/cuda/device_math.h"
#include "methods/attention_mass/cuda/attention_mass_cuda.h"

namespace kvlab {

// at(member) for the members of one group.
template <class At>
KVLAB_DEVICE float grouped_score(const ScoreReduction& reduction, int group_size, const At& at) {
  float result = at(0);
  for (int member = 1; member < group_size; ++member) {
    const float other = at(member);
    result = reduction.group == GroupReduction::kMax ? larger(result, other) : result + other;
  }
  return reduction.group == GroupReduction::kMean ? result / static_cast<float>(group_size)
                                                  : result;
}

// at(key) for 0 <= key < num_scored.
template <class At>
KVLAB_DEVICE float pooled_score(const ScoreReduction& reduction, int64_t key, const At& at) {
  if (reduction.pooling == PoolKind::kNone) {
    return at(key);
  }
  const int64_t half = reduction.kernel / 2;
  const int64_t begin = key < half ? 0 : key - half;
  const int64_t end = smaller(reduction.num_scored, key + half + 1);
  if (reduction.pooling == PoolKind::kMax) {
    float result = at(key);
    for (int64_t k = begin; k < end; ++k) {
      result = larger(result, at(k));
    }
    return result;
  }
  float sum = 0;
  for (int64_t k = begin; k < end; ++k) {
    sum += at(k);
  }
  return sum / static_cast<float>(reduction.kernel);
}

// at(member, key).
template <class At>
KVLAB_DEVICE float reduced_score(const ScoreReduction& reduction, int group_size, int64_t key,
                                 const At& at) {
  if (reduction.pool_before_group) {
    return grouped_score(reduction, group_size, [&](int member) {
      return pooled_score(reduction, key, [&](int64_t k) { return at(member, k); });
    });
  }
  return pooled_score(reduction, key, [&](int64_t k) {
    return grouped_score(reduction, group_size, [&](int member) { return at(member, k); });
  });
}

// One thread a key.
struct ScoreReductionKernel {
  struct Params {
    const float* scores;  // [num_heads, num_keys]
    int64_t group_size;
    int64_t num_keys;
    ScoreReduction reduction;
    float* out;  // [num_groups, num_scored]
  };
  static constexpr int kThreads = 128;
  static constexpr int kSharedBytes = 128;  // unused

  template <class Block>
  KVLAB_DEVICE static void run(Block& block, char*, const Params& p) {
    block.each_thread([&](int thread) {
      const int64_t key = block.x() * kThreads + thread;
      if (key < p.reduction.num_scored) {
        const float* scores = p.scores + block.y() * p.group_size * p.num_keys;
        p.out[block.y() * p.reduction.num_scored + key] =
            reduced_score(p.reduction, static_cast<int>(p.group_size), key,
                          [&](int member, int64_t k) { return scores[member * p.num_keys + k]; });
      }
    });
  }
};

template <class Launcher>
void launch_reduction(Launcher& launcher, const float* scores, int64_t num_heads,
                      int64_t num_groups, int64_t num_keys, const ScoreReduction& reduction,
                      float* out) {
  launcher.template launch<ScoreReductionKernel>(
      {divide_up(reduction.num_scored, ScoreReductionKernel::kThreads), num_groups, 1},
      {scores, num_heads / num_groups, num_keys, reduction, out});
}

}  // namespace kvlab
