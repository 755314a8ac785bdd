// The arithmetic of attention_mass_cuda and add_attention_sums_cuda, in three kernels:
//
//   RowSumsKernel    the largest score and the sum of exponentials of 64 query rows over 512 keys
//   RowFinishKernel  joins these for every row
//   MassKernel       64 keys against all rows of their KV head: scores again, weights from the
//                    row's largest score and sum, reduced over the rows, then over the group
//
// Scores are computed twice and never stored. Query rows of one KV head are numbered
// member * num_rows + row. add_attention_sums has each row's logsumexp already and needs MassKernel
// alone.
#pragma once

#include "methods/attention_mass/cuda/attention_mass_cuda.h"
#include "methods/attention_mass/cuda/score_reduction_kernel.h"
#include "methods/attention_mass/cuda/score_tile.h"

namespace kvlab {

constexpr int kMassMaxGroup = 16;
constexpr int kMassMaxPoolKernel = 49;
constexpr int64_t kMassChunkKeys = 8 * kTileKeys;  // of one RowSumsKernel block

struct MassInput {
  HeadRows queries;
  HeadRows keys;
  HeadRows extra_keys;
  int64_t group_size;
  int64_t head_dim;
  int64_t num_rows;  // of each query head
  int64_t num_keys;
  int64_t num_extra_keys;
  float scale;
  const int64_t* first_visible;  // null: 0
  const int64_t* visible;        // null: num_keys
  const int64_t* extra_visible;  // null: num_extra_keys
  bool causal;                   // instead of these: row r sees keys up to num_keys - num_rows + r,
  int64_t sliding_window;        // and of these the last `sliding_window` (0: all)
};

struct KeyRange {
  int begin;
  int end;
};

KVLAB_DEVICE KeyRange visible_keys(const MassInput& in, int64_t row) {
  if (in.causal) {
    const int64_t end = in.num_keys - in.num_rows + row + 1;
    const int64_t begin =
        in.sliding_window > 0 && end > in.sliding_window ? end - in.sliding_window : 0;
    return {static_cast<int>(begin), static_cast<int>(end)};
  }
  return {in.first_visible != nullptr ? static_cast<int>(in.first_visible[row]) : 0,
          static_cast<int>(in.visible != nullptr ? in.visible[row] : in.num_keys)};
}

KVLAB_DEVICE KeyRange visible_extra_keys(const MassInput& in, int64_t row) {
  return {
      0, static_cast<int>(in.extra_visible != nullptr ? in.extra_visible[row] : in.num_extra_keys)};
}

template <class Element>
KVLAB_DEVICE const Element* device_row(const HeadRows& rows, int64_t head, int64_t row) {
  return static_cast<const Element*>(rows.data) + head * rows.head_stride + row * rows.row_stride;
}

// Query row `index` of a KV head.
template <class Element>
KVLAB_DEVICE const Element* query_row(const MassInput& in, int64_t kv_head, int index) {
  const int rows = static_cast<int>(in.num_rows);
  return device_row<Element>(in.queries, kv_head * in.group_size + index / rows, index % rows);
}

inline int64_t mass_key_chunks(const MassInput& in) {
  return divide_up(in.num_keys, kMassChunkKeys);
}
inline int64_t mass_chunks(const MassInput& in) {
  return mass_key_chunks(in) + divide_up(in.num_extra_keys, kMassChunkKeys);
}

struct RowSumsParams {
  MassInput in;
  int64_t key_chunks;  // the chunks after these are of the extra keys
  int64_t num_chunks;
  float* largest;  // [num_heads * num_rows, num_chunks]
  float* sum;      // the same
};

template <class Element>
struct RowSumsKernel {
  using Params = RowSumsParams;
  static constexpr int kThreads = kTileThreads;
  static constexpr int kSliceBytes = 2 * TileSlice<Element>::kBytes;
  static constexpr int kRangeBytes = kTileRows * static_cast<int>(sizeof(KeyRange));
  static constexpr int kPairBytes = 2 * kThreads * 4;
  static constexpr int kSharedBytes = kSliceBytes + kTileScoreBytes + kRangeBytes + kPairBytes;

  struct Running {
    float largest;
    float sum;
  };

  template <class Block>
  KVLAB_DEVICE static void run(Block& block, char* shared, const Params& p) {
    const MassInput& in = p.in;
    const int64_t kv_head = block.y();
    const int first_row = static_cast<int>(block.z()) * kTileRows;
    const int all_rows = static_cast<int>(in.group_size * in.num_rows);
    const int rows = static_cast<int>(smaller(kTileRows, all_rows - first_row));
    const bool extra = block.x() >= p.key_chunks;
    const HeadRows& keys = extra ? in.extra_keys : in.keys;
    const int64_t chunk = extra ? block.x() - p.key_chunks : block.x();
    const int begin = static_cast<int>(chunk * kMassChunkKeys);
    const int end =
        static_cast<int>(smaller(begin + kMassChunkKeys, extra ? in.num_extra_keys : in.num_keys));
    auto* scores = reinterpret_cast<float*>(shared + kSliceBytes);
    auto* ranges = reinterpret_cast<KeyRange*>(shared + kSliceBytes + kTileScoreBytes);
    auto* pair_largest =
        reinterpret_cast<float*>(shared + kSliceBytes + kTileScoreBytes + kRangeBytes);
    float* pair_sum = pair_largest + kThreads;

    // Threads 2 r and 2 r + 1 share row r.
    typename Block::template PerThread<Running> running;
    block.each_thread([&](int thread) {
      running[thread] = {minus_infinity(), 0.0F};
      if (thread < kTileRows) {
        const int64_t row = (first_row + thread) % in.num_rows;
        ranges[thread] = thread >= rows ? KeyRange{0, 0}
                         : extra        ? visible_extra_keys(in, row)
                                        : visible_keys(in, row);
      }
    });
    for (int tile = begin; tile < end; tile += kTileKeys) {
      const int count = static_cast<int>(smaller(kTileKeys, end - tile));
      tile_scores<Element>(
          block, rows, [&](int row) { return query_row<Element>(in, kv_head, first_row + row); },
          count, [&](int key) { return device_row<Element>(keys, kv_head, tile + key); },
          static_cast<int>(in.head_dim), shared, scores);
      block.each_thread([&](int thread) {
        const KeyRange range = ranges[thread / 2];
        const float* row = scores + thread / 2 * kScoreStride;
        const auto seen = [&](int key) {
          return key < count && tile + key >= range.begin && tile + key < range.end;
        };
        float largest = running[thread].largest;
        for (int key = thread % 2; key < kTileKeys; key += 2) {
          if (seen(key)) {
            largest = larger(largest, row[key] * in.scale);
          }
        }
        float sum = running[thread].sum * exp_difference(running[thread].largest, largest);
        for (int key = thread % 2; key < kTileKeys; key += 2) {
          if (seen(key)) {
            sum += expf(row[key] * in.scale - largest);
          }
        }
        running[thread] = {largest, sum};
      });
    }
    block.each_thread([&](int thread) {
      pair_largest[thread] = running[thread].largest;
      pair_sum[thread] = running[thread].sum;
    });
    block.each_thread([&](int thread) {
      if (thread < rows) {
        const float a = pair_largest[2 * thread];
        const float b = pair_largest[2 * thread + 1];
        const float largest = larger(a, b);
        const int64_t at = (kv_head * all_rows + first_row + thread) * p.num_chunks + block.x();
        p.largest[at] = largest;
        p.sum[at] = pair_sum[2 * thread] * exp_difference(a, largest) +
                    pair_sum[2 * thread + 1] * exp_difference(b, largest);
      }
    });
  }
};

// One block a row.
struct RowFinishKernel {
  struct Params {
    int64_t num_chunks;
    const float* largest;  // [rows, num_chunks]
    const float* sum;
    float* row_largest;  // [rows]
    float* row_inverse;  // [rows], 1 / sum of exp(score - largest); 0 where nothing is seen
  };
  static constexpr int kThreads = 128;
  static constexpr int kSharedBytes = 2 * kThreads * 4;

  template <class Block>
  KVLAB_DEVICE static void run(Block& block, char* shared, const Params& p) {
    auto* largest = reinterpret_cast<float*>(shared);
    float* sum = largest + kThreads;
    const float* from_largest = p.largest + block.x() * p.num_chunks;
    const float* from_sum = p.sum + block.x() * p.num_chunks;
    block.each_thread([&](int thread) {
      float found = minus_infinity();
      for (int64_t chunk = thread; chunk < p.num_chunks; chunk += kThreads) {
        found = larger(found, from_largest[chunk]);
      }
      float total = 0;
      for (int64_t chunk = thread; chunk < p.num_chunks; chunk += kThreads) {
        total += from_sum[chunk] * exp_difference(from_largest[chunk], found);
      }
      largest[thread] = found;
      sum[thread] = total;
    });
    for (int step = kThreads / 2; step > 0; step /= 2) {
      block.each_thread([&](int thread) {
        if (thread < step) {
          const float found = larger(largest[thread], largest[thread + step]);
          sum[thread] = sum[thread] * exp_difference(largest[thread], found) +
                        sum[thread + step] * exp_difference(largest[thread + step], found);
          largest[thread] = found;
        }
      });
    }
    block.each_thread([&](int thread) {
      if (thread == 0) {
        p.row_largest[block.x()] = largest[0];
        p.row_inverse[block.x()] = sum[0] > 0 ? 1 / sum[0] : 0.0F;
      }
    });
  }
};

struct MassParams {
  MassInput in;
  const float* row_largest;  // [num_heads * num_rows]; with a null inverse the row's logsumexp
  const float* row_inverse;  // [num_heads * num_rows] or null
  RowReduction reduction;
  float* mass;  // [num_heads, .]
  int64_t mass_head_stride;
  bool add;  // to what is there
  // With `reduced` the group is reduced and the scores pooled, and nothing goes to `mass`.
  ScoreReduction score_reduction;
  float* reduced;    // [num_kv_heads, num_scored] or null
  int64_t own_keys;  // of a block; the rest of its tile is the neighbours' edge for the pooling
};

template <class Element>
struct MassKernel {
  using Params = MassParams;
  static constexpr int kThreads = kTileThreads;
  static constexpr int kHalves = kThreads / kTileKeys;  // threads that share a key
  static constexpr int kSliceBytes = 2 * TileSlice<Element>::kBytes;
  static constexpr int kMassBytes = kHalves * kMassMaxGroup * kTileKeys * 4;
  static constexpr int kRangeBytes = kTileRows * static_cast<int>(sizeof(KeyRange));
  static constexpr int kSharedBytes =
      kSliceBytes + kTileScoreBytes + kMassBytes + kRangeBytes + 2 * kTileRows * 4;
  static_assert(kSharedBytes <= 48 * 1024);

  template <class Block>
  KVLAB_DEVICE static void run(Block& block, char* shared, const Params& p) {
    const MassInput& in = p.in;
    const int64_t kv_head = block.y();
    const int group_size = static_cast<int>(in.group_size);
    const int all_rows = static_cast<int>(in.group_size * in.num_rows);
    const bool fused = p.reduced != nullptr;
    const int num_keys = static_cast<int>(fused ? p.score_reduction.num_scored : in.num_keys);
    // Keys [begin, end) are computed, [own_begin, own_end) written.
    const int own_begin = static_cast<int>(block.x() * p.own_keys);
    const int own_end = static_cast<int>(smaller(num_keys, own_begin + p.own_keys));
    const int edge = (kTileKeys - static_cast<int>(p.own_keys)) / 2;
    const int begin = own_begin < edge ? 0 : own_begin - edge;
    const int end = static_cast<int>(smaller(num_keys, own_end + edge));
    const int count = end - begin;
    auto* scores = reinterpret_cast<float*>(shared + kSliceBytes);
    auto* mass = reinterpret_cast<float*>(shared + kSliceBytes + kTileScoreBytes);
    auto* ranges = reinterpret_cast<KeyRange*>(shared + kSliceBytes + kTileScoreBytes + kMassBytes);
    auto* largest =
        reinterpret_cast<float*>(shared + kSliceBytes + kTileScoreBytes + kMassBytes + kRangeBytes);
    float* inverse = largest + kTileRows;
    const auto mass_at = [&](int half, int member, int key) -> float& {
      return mass[(half * kMassMaxGroup + member) * kTileKeys + key];
    };
    const bool take_max = p.reduction == RowReduction::kMax;

    block.each_thread([&](int thread) {
      for (int member = 0; member < group_size; ++member) {
        mass_at(thread / kTileKeys, member, thread % kTileKeys) = 0;
      }
    });
    for (int first_row = 0; first_row < all_rows; first_row += kTileRows) {
      const int rows = static_cast<int>(smaller(kTileRows, all_rows - first_row));
      if (in.causal && !any_row_sees(in, first_row, rows, begin, end)) {
        continue;
      }
      block.each_thread([&](int thread) {
        if (thread < kTileRows) {
          const int64_t at = kv_head * all_rows + first_row + thread;
          const bool there = thread < rows;
          ranges[thread] =
              there ? visible_keys(in, (first_row + thread) % in.num_rows) : KeyRange{0, 0};
          largest[thread] = there ? p.row_largest[at] : 0.0F;
          inverse[thread] = there && p.row_inverse != nullptr ? p.row_inverse[at] : 1.0F;
        }
      });
      tile_scores<Element>(
          block, rows, [&](int row) { return query_row<Element>(in, kv_head, first_row + row); },
          count, [&](int key) { return device_row<Element>(in.keys, kv_head, begin + key); },
          static_cast<int>(in.head_dim), shared, scores);
      block.each_thread([&](int thread) {
        const int key = thread % kTileKeys;
        for (int row = thread / kTileKeys; row < kTileRows; row += kHalves) {
          float& score = scores[row * kScoreStride + key];
          const bool seen =
              key < count && begin + key >= ranges[row].begin && begin + key < ranges[row].end;
          score = seen ? expf(score * in.scale - largest[row]) * inverse[row] : 0.0F;
        }
      });
      block.each_thread([&](int thread) {
        const int key = thread % kTileKeys;
        const int half = thread / kTileKeys;
        const int half_rows = kTileRows / kHalves;
        int row = half * half_rows;
        const int last = static_cast<int>(smaller(rows, row + half_rows));
        while (row < last) {
          const int member = (first_row + row) / static_cast<int>(in.num_rows);
          const int member_end = static_cast<int>(
              smaller(last, (member + 1) * static_cast<int>(in.num_rows) - first_row));
          float value = mass_at(half, member, key);
          for (; row < member_end; ++row) {
            const float weight = scores[row * kScoreStride + key];
            value = take_max ? larger(value, weight) : value + weight;
          }
          mass_at(half, member, key) = value;
        }
      });
    }
    block.each_thread([&](int thread) {
      if (thread < kTileKeys) {
        for (int member = 0; member < group_size; ++member) {
          float& value = mass_at(0, member, thread);
          for (int half = 1; half < kHalves; ++half) {
            const float other = mass_at(half, member, thread);
            value = take_max ? larger(value, other) : value + other;
          }
          if (p.reduction == RowReduction::kMean) {
            value /= static_cast<float>(in.num_rows);
          }
        }
      }
    });
    block.each_thread([&](int thread) {
      if (fused) {
        if (own_begin + thread < own_end) {
          p.reduced[kv_head * num_keys + own_begin + thread] = reduced_score(
              p.score_reduction, group_size, own_begin + thread, [&](int member, int64_t key) {
                return mass_at(0, member, static_cast<int>(key) - begin);
              });
        }
        return;
      }
      const int key = thread % kTileKeys;
      if (own_begin + key < own_end) {
        for (int member = thread / kTileKeys; member < group_size; member += kHalves) {
          float& out =
              p.mass[(kv_head * group_size + member) * p.mass_head_stride + own_begin + key];
          const float value = mass_at(0, member, key);
          out = p.add ? out + value : value;
        }
      }
    });
  }

  // Causal rows only.
  KVLAB_DEVICE static bool any_row_sees(const MassInput& in, int first_row, int rows, int begin,
                                        int end) {
    const int num_rows = static_cast<int>(in.num_rows);
    const int first = first_row % num_rows;
    if (first + rows > num_rows) {
      return true;  // two members' rows: the last row of one and the first of the next
    }
    return visible_keys(in, first + rows - 1).end > begin && visible_keys(in, first).begin < end;
  }
};

inline MassInput mass_input(const AttentionMassArgs& args) {
  MassInput in{};
  in.queries = args.queries;
  in.keys = args.keys;
  in.extra_keys = args.extra_keys;
  in.group_size = args.num_heads / args.num_kv_heads;
  in.head_dim = args.head_dim;
  in.num_rows = args.num_rows;
  in.num_keys = args.num_keys;
  in.num_extra_keys = args.num_extra_keys;
  in.scale = args.scale;
  in.first_visible = args.first_visible;
  in.visible = args.visible;
  in.extra_visible = args.extra_visible;
  return in;
}

template <class Element, class Launcher>
void launch_mass(Launcher& launcher, const CudaAttentionMassArgs& args) {
  const MassInput in = mass_input(args.mass);
  const int64_t num_chunks = mass_chunks(in);
  const int64_t rows = args.mass.num_heads * args.mass.num_rows;
  auto* row_largest = static_cast<float*>(args.scratch);
  float* row_inverse = row_largest + rows;
  float* chunk_largest = row_inverse + rows;
  float* chunk_sum = chunk_largest + rows * num_chunks;
  launcher.template launch<RowSumsKernel<Element>>(
      {num_chunks, args.mass.num_kv_heads, divide_up(in.group_size * in.num_rows, kTileRows)},
      {in, mass_key_chunks(in), num_chunks, chunk_largest, chunk_sum});
  launcher.template launch<RowFinishKernel>(
      {rows, 1, 1}, {num_chunks, chunk_largest, chunk_sum, row_largest, row_inverse});
  MassParams p{};
  p.in = in;
  p.row_largest = row_largest;
  p.row_inverse = row_inverse;
  p.reduction = args.mass.reduction;
  p.mass = args.mass.mass;
  p.mass_head_stride = args.mass.num_keys;
  p.score_reduction = args.reduction;
  p.reduced = args.reduced;
  const bool pools = args.reduced != nullptr && args.reduction.pooling != PoolKind::kNone;
  p.own_keys = kTileKeys - (pools ? args.reduction.kernel / 2 * 2 : 0);
  const int64_t keys = args.reduced != nullptr ? args.reduction.num_scored : in.num_keys;
  launcher.template launch<MassKernel<Element>>(
      {divide_up(keys, p.own_keys), args.mass.num_kv_heads, 1}, p);
}

template <class Launcher>
void launch_mass(Launcher& launcher, const CudaAttentionMassArgs& args) {
  if (args.mass.type == ElementType::kFloat32) {
    launch_mass<float>(launcher, args);
  } else {
    launch_mass<BFloat16>(launcher, args);
  }
}

template <class Launcher>
void launch_sums(Launcher& launcher, const AttentionSumsArgs& args) {
  MassParams p{};
  p.in.queries = args.queries;
  p.in.keys = args.keys;
  p.in.group_size = args.num_heads / args.num_kv_heads;
  p.in.head_dim = args.head_dim;
  p.in.num_rows = args.q_len;
  p.in.num_keys = args.kv_len;
  p.in.scale = args.scale;
  p.in.causal = true;
  p.in.sliding_window = args.sliding_window;
  p.row_largest = args.logsumexp;
  p.reduction = RowReduction::kSum;
  p.mass = args.sums;
  p.mass_head_stride = args.sums_head_stride;
  p.add = true;
  p.own_keys = kTileKeys;
  const Grid grid{divide_up(args.kv_len, p.own_keys), args.num_kv_heads, 1};
  if (args.type == ElementType::kFloat32) {
    launcher.template launch<MassKernel<float>>(grid, p);
  } else {
    launcher.template launch<MassKernel<BFloat16>>(grid, p);
  }
}

}  // namespace kvlab
