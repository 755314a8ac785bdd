// Reading a BPE model from tokenizer.json, and the tables that make encoding fast.
#include <fmt/format.h>

#include "harness/text/bpe.h"
#include "harness/text/byte_level.h"

namespace kvlab {
namespace {

constexpr int64_t kLargestId = int64_t{1} << 22U;  // a guard against absurd ids in bad files
constexpr std::string_view kMetaspace = "\u2581";

}  // namespace

absl::StatusOr<std::unique_ptr<const Bpe>> Bpe::from_json(const Json& model,
                                                          std::string_view origin) {
  std::unique_ptr<Bpe> bpe(new Bpe());
  KVLAB_ASSIGN_OR_RETURN(bpe->prefix_,
                         json_get_or<std::string>(model, "continuing_subword_prefix", "", origin));
  KVLAB_ASSIGN_OR_RETURN(bpe->suffix_,
                         json_get_or<std::string>(model, "end_of_word_suffix", "", origin));
  KVLAB_ASSIGN_OR_RETURN(bpe->fuse_unknown_, json_get_or<bool>(model, "fuse_unk", false, origin));
  KVLAB_ASSIGN_OR_RETURN(bpe->byte_fallback_,
                         json_get_or<bool>(model, "byte_fallback", false, origin));
  KVLAB_ASSIGN_OR_RETURN(bpe->ignore_merges_,
                         json_get_or<bool>(model, "ignore_merges", false, origin));
  KVLAB_ASSIGN_OR_RETURN(const double dropout, json_get_or<double>(model, "dropout", 0.0, origin));
  if (dropout != 0.0) {
    return unimplemented("{}: dropout {} makes ids random; set it to null", origin, dropout);
  }
  KVLAB_RETURN_IF_ERROR(bpe->read_vocab(model, origin));
  KVLAB_RETURN_IF_ERROR(bpe->read_merges(model, origin));
  KVLAB_ASSIGN_OR_RETURN(const std::string unknown,
                         json_get_or<std::string>(model, "unk_token", "", origin));
  if (!unknown.empty()) {
    bpe->unknown_ = bpe->token_id(unknown);
    if (!bpe->unknown_) {
      return invalid_argument("{}: the unk_token {} is not in the vocabulary", origin, unknown);
    }
  }
  bpe->index_bytes();
  bpe->find_word_separation();
  return bpe;
}

absl::Status Bpe::read_vocab(const Json& model, std::string_view origin) {
  const auto vocab = model.find("vocab");
  if (vocab == model.end() || !vocab->is_object() || vocab->empty()) {
    return invalid_argument("{}: vocab should be an object of tokens and their ids", origin);
  }
  int64_t largest = 0;
  for (const auto& [token, id] : vocab->items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > kLargestId) {
      return invalid_argument("{}: vocab.{} should be an id from 0 to {}, but is {}", origin, token,
                              kLargestId, dump_json(id));
    }
    largest = std::max(largest, id.get<int64_t>());
  }
  tokens_.resize(static_cast<size_t>(largest) + 1);
  has_token_.resize(tokens_.size(), false);
  ids_.reserve(vocab->size());
  for (const auto& [token, id] : vocab->items()) {
    const auto slot = id.get<size_t>();
    if (has_token_[slot]) {
      return invalid_argument("{}: the tokens {} and {} both have id {}", origin, tokens_[slot],
                              token, slot);
    }
    tokens_[slot] = token;
    has_token_[slot] = true;
    ids_.emplace(to_absl(tokens_[slot]), static_cast<int32_t>(slot));
  }
  return {};
}

absl::Status Bpe::read_merges(const Json& model, std::string_view origin) {
  const auto merges = model.find("merges");
  if (merges == model.end() || !merges->is_array()) {
    return invalid_argument("{}: merges should be a list", origin);
  }
  merges_.reserve(merges->size());
  int32_t rank = 0;
  for (const Json& merge : *merges) {
    const std::string where = fmt::format("{}: merges[{}]", origin, rank);
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
        return invalid_argument("{} should be two tokens with one space between, but is {}", where,
                                dump_json(merge));
      }
      const std::string_view view = text;
      KVLAB_RETURN_IF_ERROR(add_merge(view.substr(0, space), view.substr(space + 1), rank, where));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      KVLAB_RETURN_IF_ERROR(add_merge(merge[0].get_ref<const std::string&>(),
                                      merge[1].get_ref<const std::string&>(), rank, where));
    } else {
      return invalid_argument("{} should be \"a b\" or [\"a\", \"b\"], but is {}", where,
                              dump_json(merge));
    }
    ++rank;
  }
  return {};
}

absl::Status Bpe::add_merge(std::string_view left, std::string_view right, int32_t rank,
                            std::string_view where) {
  const std::optional<int32_t> left_id = token_id(left);
  const std::optional<int32_t> right_id = token_id(right);
  if (!left_id || !right_id) {
    return invalid_argument("{}: {} is not in the vocabulary", where, !left_id ? left : right);
  }
  std::string joined(left);
  joined += right.substr(std::min(prefix_.size(), right.size()));
  const std::optional<int32_t> id = token_id(joined);
  if (!id) {
    return invalid_argument("{}: {} and {} make {}, which is not in the vocabulary", where, left,
                            right, joined);
  }
  const uint64_t key =
      (uint64_t{static_cast<uint32_t>(*left_id)} << 32U) | static_cast<uint32_t>(*right_id);
  merges_.insert_or_assign(key, Merge{rank, *id});
  return {};
}

void Bpe::index_bytes() {
  has_byte_alphabet_ = prefix_.empty() && suffix_.empty();
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto as_char = static_cast<unsigned char>(byte);
    byte_alphabet_[byte] = token_id(byte_level_character(as_char)).value_or(-1);
    has_byte_alphabet_ = has_byte_alphabet_ && byte_alphabet_[byte] >= 0;
    fallback_bytes_[byte] = token_id(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
  if (!ignore_merges_ || !has_byte_alphabet_) {
    return;
  }
  byte_tokens_.resize(tokens_.size());
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (std::optional<std::string> bytes = from_byte_level(tokens_[id]); bytes && has_token_[id]) {
      byte_tokens_[id] = std::move(*bytes);
      byte_ids_.emplace(to_absl(byte_tokens_[id]), static_cast<int32_t>(id));
    }
  }
}

void Bpe::find_word_separation() {
  // With ignore_merges, prefixes or suffixes the place of a word's ends matters by itself.
  separates_words_ =
      !ignore_merges_ && prefix_.empty() && suffix_.empty() && token_id(kMetaspace).has_value();
  for (const auto& [pair, merge] : merges_) {
    if (!separates_words_) {
      return;
    }
    const std::string& right = tokens_[static_cast<uint32_t>(pair)];
    const std::string& left = tokens_[pair >> 32U];
    separates_words_ = !std::string_view(right).starts_with(kMetaspace) ||
                       std::string_view(left).ends_with(kMetaspace);
  }
}

}  // namespace kvlab
