#include "harness/kernels/decode_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/base/check.h"
#include "harness/kernels/decode_attention_kernels.h"
#include "harness/kernels/dispatch.h"
#include "harness/kernels/parallel.h"
#include "harness/kernels/scratch.h"

namespace kvlab {
namespace {

// Long heads are divided so that a single arm uses every thread; the chunks of a head depend on its
// own length alone.
constexpr int64_t kChunkEntries = 512;
constexpr int64_t kNextEntries = 128;  // of the next chunk, asked for ahead

struct Task {
  int64_t head;
  int64_t begin;  // of the head's entries, prompt first
  int64_t end;
};

DecodeRun cut_run(const void* keys, const void* values, int64_t len, int64_t begin, int64_t end,
                  int64_t entry_bytes) {
  const int64_t first = std::clamp<int64_t>(begin, 0, len);
  const int64_t last = std::clamp<int64_t>(end, 0, len);
  if (first >= last) {
    return {};
  }
  return {static_cast<const char*>(keys) + first * entry_bytes,
          static_cast<const char*>(values) + first * entry_bytes, last - first};
}

// Joins the chunks of one head, in order: partial results of [group_size] largest, [group_size]
// sum and [group_size, head_dim] output each, `stride` floats apart.
template <typename Element>
void join_chunks(const DecodeAttentionArgs& args, const float* partials, int64_t num_chunks,
                 int64_t stride, Element* output) {
  for (int64_t row = 0; row < args.group_size; ++row) {
    float largest = partials[row];
    for (int64_t c = 1; c < num_chunks; ++c) {
      largest = std::max(largest, partials[c * stride + row]);
    }
    float sums[256] = {};
    float total = 0;
    for (int64_t c = 0; c < num_chunks; ++c) {
      const float* part = partials + c * stride;
      const float factor = num_chunks == 1 ? 1.0F : std::exp(part[row] - largest);
      total += factor * part[args.group_size + row];
      const float* values = part + 2 * args.group_size + row * args.head_dim;
#pragma omp simd
      for (int64_t d = 0; d < args.head_dim; ++d) {
        sums[d] += factor * values[d];
      }
    }
    for (int64_t d = 0; d < args.head_dim; ++d) {
      output[row * args.head_dim + d] = from_float<Element>(sums[d] / total);
    }
  }
}

void join_head(const DecodeAttentionArgs& args, const float* partials, int64_t num_chunks,
               int64_t stride, void* output) {
  if (args.type == ElementType::kFloat32) {
    join_chunks(args, partials, num_chunks, stride, static_cast<float*>(output));
  } else {
    join_chunks(args, partials, num_chunks, stride, static_cast<BFloat16*>(output));
  }
}

}  // namespace

void decode_attention(const DecodeAttentionArgs& args) {
  KVLAB_CHECK(args.group_size >= 1 && args.head_dim >= 1 && args.head_dim <= 256);
  if (cpu_level() == CpuLevel::kReference) {
    decode_attention_reference(args);
    return;
  }
  const DecodeChunkFunction function = KVLAB_KERNEL(decode_chunk);
  std::vector<Task> tasks;
  tasks.reserve(args.heads.size());
  for (size_t h = 0; h < args.heads.size(); ++h) {
    const int64_t len = args.heads[h].prompt_len + args.heads[h].new_len;
    KVLAB_CHECK(len >= 1);
    for (int64_t begin = 0; begin < len; begin += kChunkEntries) {
      tasks.push_back({static_cast<int64_t>(h), begin, std::min(len, begin + kChunkEntries)});
    }
  }
  const int64_t stride = args.group_size * (args.head_dim + 2);
  auto* partials = static_cast<float*>(thread_scratch(0, tasks.size() * stride * sizeof(float)));
  const int64_t entry_bytes = args.head_dim * element_size(args.type);
  parallel_for(static_cast<int64_t>(tasks.size()), [&](int64_t index, int) {
    const Task& task = tasks[index];
    const DecodeHead& head = args.heads[task.head];
    DecodeChunk chunk;
    chunk.type = args.type;
    chunk.group_size = args.group_size;
    chunk.head_dim = args.head_dim;
    chunk.scale = args.scale;
    chunk.queries = head.queries;
    chunk.runs[0] = cut_run(head.prompt_keys, head.prompt_values, head.prompt_len, task.begin,
                            task.end, entry_bytes);
    chunk.runs[1] = cut_run(head.new_keys, head.new_values, head.new_len,
                            task.begin - head.prompt_len, task.end - head.prompt_len, entry_bytes);
    if (const size_t next = static_cast<size_t>(index + kernel_threads()); next < tasks.size()) {
      const Task& ahead = tasks[next];
      const DecodeHead& from = args.heads[ahead.head];
      const DecodeRun run = cut_run(from.prompt_keys, from.prompt_values, from.prompt_len,
                                    ahead.begin, ahead.end, entry_bytes);
      chunk.next_keys = run.keys;
      chunk.next_len = std::min(run.len, kNextEntries);
    }
    chunk.score_stride = kChunkEntries;
    chunk.weights =
        static_cast<float*>(thread_scratch(1, args.group_size * kChunkEntries * sizeof(float)));
    chunk.largest = partials + index * stride;
    chunk.sum = chunk.largest + args.group_size;
    chunk.output = chunk.sum + args.group_size;
    function(chunk);
    if (task.begin == 0 && head.prompt_len + head.new_len <= kChunkEntries) {
      join_head(args, chunk.largest, 1, stride, head.output);
    }
  });
  for (size_t first = 0; first < tasks.size();) {
    size_t last = first + 1;
    while (last < tasks.size() && tasks[last].head == tasks[first].head) {
      ++last;
    }
    if (last - first > 1) {
      join_head(args, partials + first * stride, static_cast<int64_t>(last - first), stride,
                args.heads[tasks[first].head].output);
    }
    first = last;
  }
}

}  // namespace kvlab
