#include "harness/text/bpe.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/text/byte_level.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

uint64_t pair_key(int32_t left, int32_t right) {
  return (uint64_t{static_cast<uint32_t>(left)} << 32U) | static_cast<uint32_t>(right);
}

size_t character_length(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const size_t length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
  return std::min(length, text.size() - at);
}

// A heap's top is its largest element: the lowest rank, then the leftmost pair, goes first.
constexpr auto kGoesLater = [](const auto& a, const auto& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
};

}  // namespace

Bpe::Scratch& Bpe::scratch() {
  thread_local Scratch made;
  // One huge word must not keep its memory for ever.
  if (made.symbols.capacity() > (size_t{1} << 20U)) {
    made = Scratch();
  }
  made.symbols.clear();
  made.heap.clear();
  return made;
}

std::optional<int32_t> Bpe::token_id(std::string_view token) const {
  const auto it = ids_.find(to_absl(token));
  return it == ids_.end() ? std::nullopt : std::optional<int32_t>(it->second);
}

const std::string* Bpe::token(int32_t id) const {
  const bool known = id >= 0 && id < vocab_size() && has_token_[static_cast<size_t>(id)];
  return known ? &tokens_[static_cast<size_t>(id)] : nullptr;
}

const Bpe::Merge* Bpe::find_merge(int32_t left, int32_t right) const {
  const auto it = merges_.find(pair_key(left, right));
  return it == merges_.end() ? nullptr : &it->second;
}

void Bpe::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    if (const std::optional<int32_t> id = token_id(word)) {
      ids.push_back(*id);
      return;
    }
  }
  Scratch& work = scratch();
  append_characters(word, work.symbols);
  merge(work, ids);
}

void Bpe::encode_bytes(std::string_view bytes, std::vector<int32_t>& ids) const {
  KVLAB_CHECK(has_byte_alphabet_);
  if (ignore_merges_) {
    if (const auto it = byte_ids_.find(to_absl(bytes)); it != byte_ids_.end()) {
      ids.push_back(it->second);
      return;
    }
  }
  if (bytes.size() == 1) {
    ids.push_back(byte_alphabet_[static_cast<unsigned char>(bytes[0])]);
    return;
  }
  Scratch& work = scratch();
  work.symbols.reserve(bytes.size());
  for (const char byte : bytes) {
    work.symbols.push_back({byte_alphabet_[static_cast<unsigned char>(byte)], 0, 0, true});
  }
  merge(work, ids);
}

void Bpe::append_characters(std::string_view word, std::vector<Symbol>& symbols) const {
  bool unknown_pending = false;  // an unknown token that later unknown characters may join
  const auto add = [&](int32_t id) { symbols.push_back({id, 0, 0, true}); };
  std::string spelled;
  for (size_t at = 0; at < word.size();) {
    const size_t length = character_length(word, at);
    std::string_view character = word.substr(at, length);
    const bool first = at == 0;
    at += length;
    const bool last = at == word.size();
    if ((!first && !prefix_.empty()) || (last && !suffix_.empty())) {
      spelled.assign(first ? "" : prefix_).append(character).append(last ? suffix_ : "");
      character = spelled;
    }
    if (const std::optional<int32_t> id = token_id(character)) {
      if (unknown_pending) {
        add(*unknown_);
        unknown_pending = false;
      }
      add(*id);
      continue;
    }
    const auto has_fallback = [&](char byte) {
      return fallback_bytes_[static_cast<unsigned char>(byte)] >= 0;
    };
    if (byte_fallback_ && std::all_of(character.begin(), character.end(), has_fallback)) {
      for (const char byte : character) {
        add(fallback_bytes_[static_cast<unsigned char>(byte)]);
      }
      continue;
    }
    if (unknown_) {
      if (unknown_pending && !fuse_unknown_) {
        add(*unknown_);
      }
      unknown_pending = true;
    }
  }
  if (unknown_pending) {
    add(*unknown_);
  }
}

void Bpe::merge(Scratch& work, std::vector<int32_t>& ids) const {
  std::vector<Symbol>& symbols = work.symbols;
  std::vector<Candidate>& heap = work.heap;
  const auto count = static_cast<int32_t>(symbols.size());
  const auto at = [&](int32_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };
  for (int32_t i = 0; i < count; ++i) {
    at(i).previous = i - 1;
    at(i).next = i + 1 < count ? i + 1 : -1;
    if (i + 1 < count) {
      if (const Merge* found = find_merge(at(i).id, at(i + 1).id)) {
        heap.push_back({found->rank, i, found->id});
      }
    }
  }
  std::make_heap(heap.begin(), heap.end(), kGoesLater);
  const auto consider = [&](int32_t left) {
    if (left < 0 || at(left).next < 0) {
      return;
    }
    if (const Merge* found = find_merge(at(left).id, at(at(left).next).id)) {
      heap.push_back({found->rank, left, found->id});
      std::push_heap(heap.begin(), heap.end(), kGoesLater);
    }
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), kGoesLater);
    const Candidate top = heap.back();
    heap.pop_back();
    Symbol& left = at(top.position);
    if (!left.alive || left.next < 0) {
      continue;
    }
    // The pair may have changed since; it counts as long as it still makes the same token.
    const Merge* now = find_merge(left.id, at(left.next).id);
    if (now == nullptr || now->id != top.id) {
      continue;
    }
    Symbol& right = at(left.next);
    right.alive = false;
    left.id = top.id;
    left.next = right.next;
    if (right.next >= 0) {
      at(right.next).previous = top.position;
    }
    consider(left.previous);
    consider(top.position);
  }
  for (int32_t i = count > 0 ? 0 : -1; i >= 0; i = at(i).next) {
    ids.push_back(at(i).id);
  }
}

}  // namespace kvlab
