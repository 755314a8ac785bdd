#include "harness/cache/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/base/check.h"
#include "harness/cache/gather_cuda_at.h"
#include "harness/cuda/cuda_tensors.h"

namespace kvlab {
namespace {

// Rows `positions` of source [prompt_len, head_dim] -> out [positions.size(), head_dim].
void gather_rows(const at::Tensor& source, const std::vector<int32_t>& positions,
                 const at::Tensor& out) {
  if (!source.is_cpu()) {
    const at::Tensor index =
        at::tensor(at::IntArrayRef(std::vector<int64_t>(positions.begin(), positions.end())),
                   at::TensorOptions().dtype(at::kLong))
            .to(source.device());
    at::index_select_out(const_cast<at::Tensor&>(out), source, 0, index);
    return;
  }
  const auto row_bytes = static_cast<size_t>(source.size(1) * source.element_size());
  const auto stride_bytes = static_cast<size_t>(source.stride(0) * source.element_size());
  const auto* from = static_cast<const char*>(source.const_data_ptr());
  auto* to = static_cast<char*>(out.data_ptr());
  for (size_t i = 0; i < positions.size(); ++i) {
    std::memcpy(to + i * row_bytes, from + static_cast<size_t>(positions[i]) * stride_bytes,
                row_bytes);
  }
}

// The kept rows of every head of one layer, each head its own run of one allocation.
std::vector<at::Tensor> gather_layer(const at::Tensor& source,
                                     const std::vector<std::vector<int32_t>>& kept) {
  int64_t total = 0;
  for (const auto& positions : kept) {
    total += static_cast<int64_t>(positions.size());
  }
  const at::Tensor storage = at::empty({total, source.size(2)}, source.options());
  std::vector<at::Tensor> heads;
  int64_t begin = 0;
  for (size_t head = 0; head < kept.size(); ++head) {
    const auto count = static_cast<int64_t>(kept[head].size());
    heads.push_back(storage.narrow(0, begin, count));
    gather_rows(source.select(0, static_cast<int64_t>(head)), kept[head], heads.back());
    begin += count;
  }
  return heads;
}

std::vector<at::Tensor> split_heads(const at::Tensor& source) {
  std::vector<at::Tensor> heads;
  for (int64_t head = 0; head < source.size(0); ++head) {
    heads.push_back(source.select(0, head));
    KVLAB_CHECK(heads.back().is_contiguous());
  }
  return heads;
}

}  // namespace

KvCache KvCache::start(int64_t prompt_len, int64_t max_new_tokens) {
  KVLAB_CHECK(prompt_len >= 0 && max_new_tokens >= 0);
  KvCache cache;
  cache.next_position_ = prompt_len;
  cache.max_new_tokens_ = max_new_tokens;
  return cache;
}

void KvCache::add_new_storage(const LayerState& layer) {
  dtype_ = layer.keys.scalar_type();
  device_ = layer.keys.device();
  const std::vector<int64_t> shape = {layer.keys.size(0), max_new_tokens_, layer.keys.size(2)};
  new_keys_.push_back(at::empty(shape, layer.keys.options()));
  new_values_.push_back(at::empty(shape, layer.values.options()));
}

void KvCache::add_layer(const LayerState& layer, std::vector<std::vector<int32_t>> kept) {
  KVLAB_CHECK(num_new_ == 0 && kept_.size() == prompt_keys_.size());
  KVLAB_CHECK(static_cast<int64_t>(kept.size()) == layer.keys.size(0));
  for (const auto& positions : kept) {
    KVLAB_CHECK(positions.empty() ||
                (positions.front() >= 0 && positions.back() < layer.keys.size(1)));
    KVLAB_CHECK(std::is_sorted(positions.begin(), positions.end()));
  }
  add_new_storage(layer);
  if (use_cuda_kernels(layer.keys)) {
    if constexpr (kCudaKernels) {
      GatheredLayer gathered = gather_layer_cuda(layer, kept);
      prompt_keys_.push_back(std::move(gathered.keys));
      prompt_values_.push_back(std::move(gathered.values));
    }
  } else {
    prompt_keys_.push_back(gather_layer(layer.keys, kept));
    prompt_values_.push_back(gather_layer(layer.values, kept));
  }
  kept_.push_back(std::move(kept));
  add_views();
}

KvCache KvCache::full(std::shared_ptr<const PromptState> prompt, int64_t max_new_tokens) {
  KvCache cache = start(prompt->prompt_len(), max_new_tokens);
  for (const LayerState& layer : prompt->layers) {
    cache.add_new_storage(layer);
    cache.prompt_keys_.push_back(split_heads(layer.keys));
    cache.prompt_values_.push_back(split_heads(layer.values));
    cache.add_views();
  }
  cache.keep_alive_ = std::move(prompt);
  return cache;
}

KvCache KvCache::compact(const PromptState& prompt, const Selection& selection,
                         int64_t max_new_tokens) {
  KVLAB_CHECK(selection.prompt_len == prompt.prompt_len());
  KVLAB_CHECK(selection.kept.size() == prompt.layers.size());
  KvCache cache = start(prompt.prompt_len(), max_new_tokens);
  for (size_t i = 0; i < prompt.layers.size(); ++i) {
    cache.add_layer(prompt.layers[i], selection.kept[i]);
  }
  return cache;
}

void KvCache::add_views() {
  const auto& keys = prompt_keys_.back();
  const auto& values = prompt_values_.back();
  const at::Tensor& new_keys = new_keys_.back();
  const int64_t head_bytes = max_new_tokens_ * new_keys.size(2) * new_keys.element_size();
  std::vector<HeadView>& views = views_.emplace_back();
  for (size_t head = 0; head < keys.size(); ++head) {
    const int64_t offset = static_cast<int64_t>(head) * head_bytes;
    views.push_back({.prompt_keys = keys[head].const_data_ptr(),
                     .prompt_values = values[head].const_data_ptr(),
                     .prompt_len = keys[head].size(0),
                     .new_keys = static_cast<char*>(new_keys.data_ptr()) + offset,
                     .new_values = static_cast<char*>(new_values_.back().data_ptr()) + offset});
  }
}

int64_t KvCache::first_entry_from(int64_t layer, int64_t kv_head, int64_t position) const {
  if (position <= 0) {
    return 0;
  }
  const auto l = static_cast<size_t>(layer);
  const auto h = static_cast<size_t>(kv_head);
  if (kept_.empty()) {
    return std::clamp<int64_t>(position, 0, prompt_keys_[l][h].size(0));
  }
  const auto& kept = kept_[l][h];
  return std::lower_bound(kept.begin(), kept.end(), position) - kept.begin();
}

int64_t KvCache::prompt_entries() const {
  int64_t entries = 0;
  for (const auto& layer : prompt_keys_) {
    for (const at::Tensor& keys : layer) {
      entries += keys.size(0);
    }
  }
  return entries;
}

int64_t KvCache::prompt_bytes() const {
  int64_t bytes = 0;
  for (size_t layer = 0; layer < prompt_keys_.size(); ++layer) {
    for (size_t head = 0; head < prompt_keys_[layer].size(); ++head) {
      bytes += static_cast<int64_t>(prompt_keys_[layer][head].nbytes() +
                                    prompt_values_[layer][head].nbytes());
    }
  }
  return bytes;
}

int64_t KvCache::bytes() const {
  int64_t bytes = prompt_bytes();
  for (size_t layer = 0; layer < new_keys_.size(); ++layer) {
    bytes += static_cast<int64_t>(new_keys_[layer].nbytes() + new_values_[layer].nbytes());
  }
  return bytes;
}

void KvCache::advance(int64_t tokens) {
  KVLAB_CHECK(tokens >= 0 && num_new_ + tokens <= max_new_tokens_);
  num_new_ += tokens;
  next_position_ += tokens;
}

}  // namespace kvlab
