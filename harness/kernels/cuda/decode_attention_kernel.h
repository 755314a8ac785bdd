// The arithmetic of decode_attention_cuda.
//
// A head's entries are divided into chunks, by its own length alone. One block takes one chunk for
// up to kRows query rows: keys go through shared memory in slices of 128 bytes, one thread computes
// one key's scores; then every thread sums 8 columns of the values over a share of the keys. Chunks
// of one head are joined by a second kernel.
#pragma once

#include "harness/kernels/cuda/decode_attention_cuda.h"
#include "harness/kernels/cuda/device_math.h"

namespace kvlab {

constexpr int kDecodeThreads = 128;
constexpr int64_t kDecodeTile = kDecodeThreads;  // keys at a time, one a thread
constexpr int64_t kDecodeSmallestChunk = 256;
constexpr int64_t kDecodeMaxChunks = 128;  // of one head
constexpr int kDecodeColumns = 8;          // of the values, one thread's
constexpr int kDecodeMaxHeadDim = 256;

// Entries of one chunk of a head with `len` entries, a multiple of the tile.
KVLAB_HOST_DEVICE constexpr int64_t decode_chunk_len(int64_t len) {
  const int64_t even = (len + kDecodeMaxChunks - 1) / kDecodeMaxChunks;
  const int64_t tiles = (even + kDecodeTile - 1) / kDecodeTile * kDecodeTile;
  return tiles > kDecodeSmallestChunk ? tiles : kDecodeSmallestChunk;
}

struct DecodeParams {
  int64_t group_size;
  int64_t head_dim;
  float scale;
  const DecodeHead* heads;
  // [heads, max_chunks, group_size] largest score, then sum, then [.., head_dim] output.
  float* partial_largest;
  float* partial_sum;
  float* partial_output;
  int64_t max_chunks;
};

// Where a chunk's results of one head and row lie in the partial arrays.
KVLAB_DEVICE int64_t decode_partial_index(const DecodeParams& p, int64_t head, int64_t chunk,
                                          int64_t row) {
  return (head * p.max_chunks + chunk) * p.group_size + row;
}

template <class ElementT, int kRowsT>
struct DecodeChunkKernel {
  using Element = ElementT;
  using Params = DecodeParams;
  static constexpr int kRows = kRowsT;
  static constexpr int kThreads = kDecodeThreads;
  static constexpr int kLanes = 16;  // threads that search one row's largest score

  static constexpr int kSlice = 128 / static_cast<int>(sizeof(Element));  // columns of a slice
  static constexpr int kSliceStride = kSlice + kVectorElements<Element>;  // no bank conflicts
  static constexpr int kSliceVectors = 128 / kVectorBytes;

  // Shared memory.
  static constexpr int kQueryBytes = kRows * kDecodeMaxHeadDim * 4;
  static constexpr int kScoreBytes = kRows * kThreads * 4;
  static constexpr int kSliceBytes = kThreads * kSliceStride * static_cast<int>(sizeof(Element));
  static constexpr int kStatBytes = kRows * (kLanes + 4) * 4;
  static constexpr int kSharedBytes = kQueryBytes + kScoreBytes + kSliceBytes + kStatBytes;
  // Rows whose outputs are joined at a time, in the slice's memory: head_dim / 8 threads hold a
  // row's columns, so that all threads together hold kThreads * 8 floats of each row.
  static constexpr int kJoinRows = kRows < kSliceBytes / (kThreads * kDecodeColumns * 4)
                                       ? kRows
                                       : kSliceBytes / (kThreads * kDecodeColumns * 4);
  static_assert(kJoinRows >= 1);

  struct RowValues {
    float of[kRows];
  };
  struct Output {
    float of[kRows][kDecodeColumns];
  };

  KVLAB_DEVICE static const Element* entry(const void* prompt, const void* fresh,
                                           int64_t prompt_len, int64_t index, int64_t head_dim) {
    return index < prompt_len
               ? static_cast<const Element*>(prompt) + index * head_dim
               : static_cast<const Element*>(fresh) + (index - prompt_len) * head_dim;
  }

  template <class Block>
  KVLAB_DEVICE static void run(Block& block, char* shared, const Params& p) {
    const DecodeHead head = p.heads[block.x()];
    const int64_t len = head.prompt_len + head.new_len;
    const int64_t chunk_len = decode_chunk_len(len);
    const int64_t begin = block.y() * chunk_len;
    if (begin >= len) {
      return;
    }
    const int64_t end = smaller(len, begin + chunk_len);
    const int64_t first_row = block.z() * kRows;
    const int rows = static_cast<int>(smaller(kRows, p.group_size - first_row));
    const int head_dim = static_cast<int>(p.head_dim);
    auto* queries = reinterpret_cast<float*>(shared);
    auto* scores = reinterpret_cast<float*>(shared + kQueryBytes);
    auto* slice = reinterpret_cast<Element*>(shared + kQueryBytes + kScoreBytes);
    auto* lane_largest = reinterpret_cast<float*>(shared + kQueryBytes + kScoreBytes + kSliceBytes);
    float* largest = lane_largest + kRows * kLanes;  // so far
    float* factor = largest + kRows;                 // what older sums are multiplied by
    float* total = factor + kRows;                   // of the weights, at the end

    const int vectors = head_dim / kDecodeColumns;  // threads of one key's values
    const int key_lanes = kThreads / vectors;       // keys at a time

    typename Block::template PerThread<RowValues> dots;
    typename Block::template PerThread<RowValues> sums;
    typename Block::template PerThread<Output> output;
    block.each_thread([&](int thread) {
      const auto* from = static_cast<const Element*>(head.queries) + first_row * head_dim;
      for (int i = thread; i < kRows * head_dim; i += kThreads) {
        queries[i / head_dim * kDecodeMaxHeadDim + i % head_dim] =
            i < rows * head_dim ? widen(from[i]) : 0.0F;
      }
      if (thread < kRows) {
        largest[thread] = minus_infinity();
      }
      KVLAB_UNROLL
      for (int r = 0; r < kRows; ++r) {
        sums[thread].of[r] = 0;
        KVLAB_UNROLL
        for (int c = 0; c < kDecodeColumns; ++c) {
          output[thread].of[r][c] = 0;
        }
      }
    });

    for (int64_t tile = begin; tile < end; tile += kDecodeTile) {
      const int keys = static_cast<int>(smaller(kDecodeTile, end - tile));
      block.each_thread([&](int thread) {
        KVLAB_UNROLL
        for (int r = 0; r < kRows; ++r) {
          dots[thread].of[r] = 0;
        }
      });
      for (int first = 0; first < head_dim; first += kSlice) {
        const int width = static_cast<int>(smaller(kSlice, head_dim - first));
        block.each_thread([&](int thread) {
          for (int i = thread; i < keys * kSliceVectors; i += kThreads) {
            const int key = i / kSliceVectors;
            const int column = i % kSliceVectors * kVectorElements<Element>;
            if (column < width) {
              const Element* from =
                  entry(head.prompt_keys, head.new_keys, head.prompt_len, tile + key, head_dim);
              store_vector(slice + key * kSliceStride + column, load_vector(from + first + column));
            }
          }
        });
        block.each_thread([&](int thread) {
          if (thread >= keys) {
            return;
          }
          const Element* key = slice + thread * kSliceStride;
          for (int column = 0; column < width; column += kVectorElements<Element>) {
            float values[kVectorElements<Element>];
            widen_vector(load_vector(key + column), values, Element{});
            KVLAB_UNROLL
            for (int r = 0; r < kRows; ++r) {
              const float* query = queries + r * kDecodeMaxHeadDim + first + column;
              KVLAB_UNROLL
              for (int i = 0; i < kVectorElements<Element>; ++i) {
                dots[thread].of[r] += query[i] * values[i];
              }
            }
          }
        });
      }
      block.each_thread([&](int thread) {
        KVLAB_UNROLL
        for (int r = 0; r < kRows; ++r) {
          scores[r * kThreads + thread] =
              thread < keys ? dots[thread].of[r] * p.scale : minus_infinity();
        }
      });
      block.each_thread([&](int thread) {
        if (thread < kRows * kLanes) {
          const float* row = scores + thread / kLanes * kThreads;
          float found = minus_infinity();
          for (int key = thread % kLanes; key < kThreads; key += kLanes) {
            found = larger(found, row[key]);
          }
          lane_largest[thread] = found;
        }
      });
      block.each_thread([&](int thread) {
        if (thread < kRows) {
          float found = largest[thread];
          for (int lane = 0; lane < kLanes; ++lane) {
            found = larger(found, lane_largest[thread * kLanes + lane]);
          }
          factor[thread] = exp_difference(largest[thread], found);
          largest[thread] = found;
        }
      });
      block.each_thread([&](int thread) {
        KVLAB_UNROLL
        for (int r = 0; r < kRows; ++r) {
          const float weight = exp_difference(scores[r * kThreads + thread], largest[r]);
          scores[r * kThreads + thread] = weight;
          sums[thread].of[r] = sums[thread].of[r] * factor[r] + weight;
        }
      });
      block.each_thread([&](int thread) {
        if (thread >= vectors * key_lanes) {
          return;
        }
        const int column = thread % vectors * kDecodeColumns;
        Output& out = output[thread];
        KVLAB_UNROLL
        for (int r = 0; r < kRows; ++r) {
          KVLAB_UNROLL
          for (int c = 0; c < kDecodeColumns; ++c) {
            out.of[r][c] *= factor[r];
          }
        }
        for (int key = thread / vectors; key < keys; key += key_lanes) {
          const Element* from =
              entry(head.prompt_values, head.new_values, head.prompt_len, tile + key, head_dim) +
              column;
          float values[kDecodeColumns];
          load_columns(from, values);
          KVLAB_UNROLL
          for (int r = 0; r < kRows; ++r) {
            const float weight = scores[r * kThreads + key];
            KVLAB_UNROLL
            for (int c = 0; c < kDecodeColumns; ++c) {
              out.of[r][c] += weight * values[c];
            }
          }
        }
      });
    }

    // The threads' sums, then their outputs, in a fixed order.
    block.each_thread([&](int thread) {
      KVLAB_UNROLL
      for (int r = 0; r < kRows; ++r) {
        scores[r * kThreads + thread] = sums[thread].of[r];
      }
    });
    block.each_thread([&](int thread) {
      if (thread < kRows * kLanes) {
        float sum = 0;
        for (int i = thread % kLanes; i < kThreads; i += kLanes) {
          sum += scores[thread / kLanes * kThreads + i];
        }
        lane_largest[thread] = sum;
      }
    });
    block.each_thread([&](int thread) {
      if (thread < kRows) {
        float sum = 0;
        for (int lane = 0; lane < kLanes; ++lane) {
          sum += lane_largest[thread * kLanes + lane];
        }
        total[thread] = sum;
      }
    });
    const bool whole = len <= chunk_len;
    auto* join = reinterpret_cast<float*>(slice);  // [kJoinRows, key_lanes, head_dim]
    KVLAB_UNROLL
    for (int r0 = 0; r0 < kRows; r0 += kJoinRows) {
      block.each_thread([&](int thread) {
        if (thread >= vectors * key_lanes) {
          return;
        }
        KVLAB_UNROLL
        for (int j = 0; j < kJoinRows; ++j) {
          KVLAB_UNROLL
          for (int c = 0; c < kDecodeColumns; ++c) {
            join[(j * key_lanes + thread / vectors) * head_dim + thread % vectors * kDecodeColumns +
                 c] = r0 + j < kRows ? output[thread].of[(r0 + j) % kRows][c] : 0.0F;
          }
        }
      });
      block.each_thread([&](int thread) {
        for (int i = thread; i < kJoinRows * head_dim; i += kThreads) {
          const int row = r0 + i / head_dim;
          const int column = i % head_dim;
          if (row >= rows) {
            continue;
          }
          float sum = 0;
          for (int lane = 0; lane < key_lanes; ++lane) {
            sum += join[(i / head_dim * key_lanes + lane) * head_dim + column];
          }
          if (whole) {
            store_rounded(sum / total[row], static_cast<Element*>(head.output) +
                                                (first_row + row) * head_dim + column);
          } else {
            const int64_t at = decode_partial_index(p, block.x(), block.y(), first_row + row);
            p.partial_output[at * head_dim + column] = sum;
            if (column == 0) {
              p.partial_largest[at] = largest[row];
              p.partial_sum[at] = total[row];
            }
          }
        }
      });
    }
  }

  KVLAB_DEVICE static void load_columns(const float* from, float (&out)[8]) {
    float half[4];
    widen_vector(load_vector(from), half, float{});
    KVLAB_UNROLL
    for (int i = 0; i < 4; ++i) {
      out[i] = half[i];
    }
    widen_vector(load_vector(from + 4), half, float{});
    KVLAB_UNROLL
    for (int i = 0; i < 4; ++i) {
      out[4 + i] = half[i];
    }
  }
  KVLAB_DEVICE static void load_columns(const BFloat16* from, float (&out)[8]) {
    widen_vector(load_vector(from), out, BFloat16{});
  }
};

// Joins the chunks of one head's row; heads of a single chunk are finished already.
template <class Element>
struct DecodeJoinKernel {
  using Params = DecodeParams;
  static constexpr int kThreads = kDecodeThreads;
  static constexpr int kSharedBytes = 2 * kThreads * 4;
  static_assert(kDecodeMaxChunks <= kThreads);

  template <class Block>
  KVLAB_DEVICE static void run(Block& block, char* shared, const Params& p) {
    const DecodeHead head = p.heads[block.x()];
    const int64_t row = block.y();
    const int64_t len = head.prompt_len + head.new_len;
    const int64_t chunk_len = decode_chunk_len(len);
    if (len <= chunk_len) {
      return;
    }
    const int chunks = static_cast<int>((len + chunk_len - 1) / chunk_len);
    auto* chunk_largest = reinterpret_cast<float*>(shared);
    float* factor = chunk_largest + kThreads;
    block.each_thread([&](int thread) {
      if (thread < chunks) {
        chunk_largest[thread] = p.partial_largest[decode_partial_index(p, block.x(), thread, row)];
      }
    });
    block.each_thread([&](int thread) {
      float found = minus_infinity();
      for (int c = 0; c < chunks; ++c) {
        found = larger(found, chunk_largest[c]);
      }
      if (thread < chunks) {
        factor[thread] = exp_difference(chunk_largest[thread], found);
      }
    });
    block.each_thread([&](int thread) {
      float total = 0;
      for (int c = 0; c < chunks; ++c) {
        total += factor[c] * p.partial_sum[decode_partial_index(p, block.x(), c, row)];
      }
      for (int64_t column = thread; column < p.head_dim; column += kThreads) {
        float sum = 0;
        for (int c = 0; c < chunks; ++c) {
          sum += factor[c] *
                 p.partial_output[decode_partial_index(p, block.x(), c, row) * p.head_dim + column];
        }
        store_rounded(sum / total, static_cast<Element*>(head.output) + row * p.head_dim + column);
      }
    });
  }
};

inline int64_t decode_max_chunks(const CudaDecodeArgs& args) {
  const int64_t chunks = divide_up(args.longest, kDecodeSmallestChunk);
  return chunks < kDecodeMaxChunks ? chunks : kDecodeMaxChunks;
}

template <class Element, class Launcher>
void launch_decode(Launcher& launcher, const CudaDecodeArgs& args) {
  DecodeParams p;
  p.group_size = args.group_size;
  p.head_dim = args.head_dim;
  p.scale = args.scale;
  p.heads = args.heads;
  p.max_chunks = decode_max_chunks(args);
  const int64_t partials = args.num_heads * p.max_chunks * args.group_size;
  p.partial_output = static_cast<float*>(args.scratch);
  p.partial_largest = p.partial_output + partials * args.head_dim;
  p.partial_sum = p.partial_largest + partials;
  Grid grid{args.num_heads, p.max_chunks, 1};
  if (args.group_size == 1) {
    launcher.template launch<DecodeChunkKernel<Element, 1>>(grid, p);
  } else if (args.group_size <= 4) {
    launcher.template launch<DecodeChunkKernel<Element, 4>>(grid, p);
  } else {
    grid.z = divide_up(args.group_size, 8);
    launcher.template launch<DecodeChunkKernel<Element, 8>>(grid, p);
  }
  if (p.max_chunks > 1) {
    launcher.template launch<DecodeJoinKernel<Element>>({args.num_heads, args.group_size, 1}, p);
  }
}

template <class Launcher>
void launch_decode(Launcher& launcher, const CudaDecodeArgs& args) {
  if (args.type == ElementType::kFloat32) {
    launch_decode<float>(launcher, args);
  } else {
    launch_decode<BFloat16>(launcher, args);
  }
}

}  // namespace kvlab
