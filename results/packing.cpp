#include "results/packing.h"

#include <limits>
#include <optional>

#include "harness/base/check.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
constexpr uint64_t kMaxHeads = 1 << 16;

void append_varint(uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

std::optional<uint64_t> take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 63; shift += 7) {
    if (bytes.empty()) {
      return std::nullopt;
    }
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) {
      return value;
    }
  }
  return std::nullopt;
}

absl::Status damaged(std::string_view what) { return data_loss("the stored {} are damaged", what); }

}  // namespace

std::string pack_token_ids(std::span<const int32_t> ids) {
  std::string bytes;
  for (const int32_t id : ids) {
    append_varint(static_cast<uint32_t>(id), bytes);
  }
  return bytes;
}

absl::StatusOr<std::vector<int32_t>> unpack_token_ids(std::string_view bytes) {
  std::vector<int32_t> ids;
  while (!bytes.empty()) {
    const auto id = take_varint(bytes);
    if (!id || *id > std::numeric_limits<uint32_t>::max()) {
      return damaged("token ids");
    }
    ids.push_back(static_cast<int32_t>(static_cast<uint32_t>(*id)));
  }
  return ids;
}

std::string pack_selection(const Selection& selection) {
  std::string bytes;
  append_varint(static_cast<uint64_t>(selection.prompt_len), bytes);
  append_varint(selection.kept.size(), bytes);
  append_varint(selection.kept.empty() ? 0 : selection.kept.front().size(), bytes);
  for (const auto& layer : selection.kept) {
    KVLAB_CHECK(layer.size() == selection.kept.front().size());
    for (const auto& head : layer) {
      append_varint(head.size(), bytes);
      int64_t next = 0;
      for (const int32_t position : head) {
        KVLAB_CHECK(position >= next);
        append_varint(static_cast<uint64_t>(position - next), bytes);
        next = static_cast<int64_t>(position) + 1;
      }
    }
  }
  return bytes;
}

absl::StatusOr<Selection> unpack_selection(std::string_view bytes) {
  constexpr std::string_view kWhat = "kept positions";
  const auto prompt_len = take_varint(bytes);
  const auto layers = take_varint(bytes);
  const auto heads = take_varint(bytes);
  // Every head costs at least one byte, so a lying count cannot make us allocate much.
  if (!prompt_len || !layers || !heads || *prompt_len > static_cast<uint64_t>(kMaxInt32) ||
      *layers > kMaxHeads || *heads > kMaxHeads || *layers * *heads > bytes.size()) {
    return damaged(kWhat);
  }
  Selection selection;
  selection.prompt_len = static_cast<int64_t>(*prompt_len);
  selection.kept.resize(*layers);
  for (auto& layer : selection.kept) {
    layer.resize(*heads);
    for (auto& head : layer) {
      const auto count = take_varint(bytes);
      if (!count || *count > bytes.size()) {
        return damaged(kWhat);
      }
      head.reserve(*count);
      uint64_t next = 0;
      for (uint64_t i = 0; i < *count; ++i) {
        const auto gap = take_varint(bytes);
        if (!gap || *gap > *prompt_len || next + *gap >= *prompt_len) {
          return damaged(kWhat);
        }
        head.push_back(static_cast<int32_t>(next + *gap));
        next += *gap + 1;
      }
    }
  }
  if (!bytes.empty()) {
    return damaged(kWhat);
  }
  return selection;
}

}  // namespace kvlab
