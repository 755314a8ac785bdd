// Byte-pair encoding as tokenizer.json's model of type BPE describes it.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"

namespace kvlab {

// Immutable after from_json, safe to share between threads.
class Bpe {
 public:
  static absl::StatusOr<std::unique_ptr<const Bpe>> from_json(const Json& model,
                                                              std::string_view origin);

  Bpe(const Bpe&) = delete;
  Bpe& operator=(const Bpe&) = delete;

  // Appends the ids of one word, spelled as the vocabulary spells it. A character that is not in
  // the vocabulary becomes its bytes (byte_fallback), the unknown token, or nothing.
  void encode_word(std::string_view word, std::vector<int32_t>& ids) const;

  // Appends what encode_word(to_byte_level(bytes)) would, without spelling the bytes out.
  // Only where has_byte_alphabet().
  void encode_bytes(std::string_view bytes, std::vector<int32_t>& ids) const;
  bool has_byte_alphabet() const { return has_byte_alphabet_; }

  // True where no merge joins anything with a U+2581 that follows it. A text may then be cut
  // before every such U+2581 without changing its ids.
  bool separates_words() const { return separates_words_; }

  std::optional<int32_t> token_id(std::string_view token) const;
  // The token's text, or nullptr.
  const std::string* token(int32_t id) const;
  // Largest id + 1.
  int32_t vocab_size() const { return static_cast<int32_t>(tokens_.size()); }

 private:
  struct Merge {
    int32_t rank;
    int32_t id;
  };
  struct Symbol {
    int32_t id;
    int32_t previous;  // -1 at the start
    int32_t next;      // -1 at the end
    bool alive;
  };
  struct Candidate {
    int32_t rank;
    int32_t position;
    int32_t id;
  };
  struct Scratch {
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  Bpe() = default;
  absl::Status read_vocab(const Json& model, std::string_view origin);
  absl::Status read_merges(const Json& model, std::string_view origin);
  absl::Status add_merge(std::string_view left, std::string_view right, int32_t rank,
                         std::string_view where);
  void index_bytes();
  void find_word_separation();
  void append_characters(std::string_view word, std::vector<Symbol>& symbols) const;
  void merge(Scratch& scratch, std::vector<int32_t>& ids) const;
  const Merge* find_merge(int32_t left, int32_t right) const;
  static Scratch& scratch();

  std::vector<std::string> tokens_;  // by id; empty where there is none
  std::vector<bool> has_token_;
  absl::flat_hash_map<absl::string_view, int32_t> ids_;  // keys point into tokens_
  absl::flat_hash_map<uint64_t, Merge> merges_;          // left id << 32 | right id
  std::vector<std::string> byte_tokens_;                 // tokens as raw bytes, for ignore_merges
  absl::flat_hash_map<absl::string_view, int32_t> byte_ids_;
  std::array<int32_t, 256> byte_alphabet_{};   // id of each byte's byte-level character
  std::array<int32_t, 256> fallback_bytes_{};  // id of <0x00> to <0xFF>, -1 where there is none
  std::optional<int32_t> unknown_;
  std::string prefix_;  // continuing_subword_prefix
  std::string suffix_;  // end_of_word_suffix
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
  bool has_byte_alphabet_ = false;
  bool separates_words_ = false;
};

}  // namespace kvlab
