// tokenizer.json's pre_tokenizer: cuts a normalised text into the words that BPE sees.
#pragma once

#include <absl/status/statusor.h>

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"

namespace kvlab {

struct Piece {
  std::string_view text;
  bool at_start;  // it begins where the whole text begins
};

// The pieces of one text, in order, and the memory of those that are no part of it any more.
struct Pieces {
  std::vector<Piece> list;
  std::deque<std::string> storage;

  void clear() {
    list.clear();
    storage.clear();
  }
  // Keeps `text` alive for as long as the pieces.
  std::string_view keep(std::string text) { return storage.emplace_back(std::move(text)); }
};

// Immutable, safe to share between threads. Knows Split, ByteLevel, Digits, Metaspace and sequences
// of them; null is the identity.
class PreTokenizer {
 public:
  class Step;

  static absl::StatusOr<PreTokenizer> from_json(const Json& pre_tokenizer, std::string_view where);

  PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // True where the last step is ByteLevel. split() then leaves raw bytes, and the spelling of bytes
  // as characters is left to the model.
  bool leaves_bytes() const { return leaves_bytes_; }

  // Cuts the pieces in `pieces`; empty ones are dropped.
  void split(Pieces& pieces) const;

 private:
  std::vector<std::unique_ptr<const Step>> steps_;
  bool leaves_bytes_ = false;
};

}  // namespace kvlab
