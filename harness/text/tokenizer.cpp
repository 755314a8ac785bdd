#include "harness/text/tokenizer.h"

#include <algorithm>
#include <mutex>

#include "harness/base/files.h"
#include "harness/text/byte_level.h"
#include "harness/text/tokenizer_json.h"
#include "harness/text/utf8.h"
#include "harness/text/word_cache.h"

namespace kvlab {
namespace {

constexpr std::string_view kMetaspace = "\u2581";

// What one call of encode needs; kept between calls, one call at a time.
struct Workspace {
  WordCache cache;
  Pieces pieces;
  std::vector<TextPart> parts;
  std::vector<TextPart> normalized_parts;
  std::vector<int32_t> ids;
};

// Hands out workspaces so that threads neither share nor wait for one another's.
class WorkspacePool {
 public:
  static constexpr size_t kMaxKept = 32;

  std::unique_ptr<Workspace> take() {
    const std::lock_guard lock(mutex_);
    if (kept_.empty()) {
      return std::make_unique<Workspace>();
    }
    std::unique_ptr<Workspace> workspace = std::move(kept_.back());
    kept_.pop_back();
    return workspace;
  }

  void give_back(std::unique_ptr<Workspace> workspace) {
    workspace->pieces.clear();
    workspace->parts.clear();
    workspace->normalized_parts.clear();
    workspace->ids.clear();
    const std::lock_guard lock(mutex_);
    if (kept_.size() < kMaxKept) {
      kept_.push_back(std::move(workspace));
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> kept_;
};

class JsonTokenizer final : public Tokenizer {
 public:
  explicit JsonTokenizer(TokenizerParts parts)
      : parts_(std::move(parts)),
        spells_bytes_(parts_.pre_tokenizer.leaves_bytes() && !parts_.model->has_byte_alphabet()) {}

  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const override {
    std::unique_ptr<Workspace> work = pool_.take();
    encode_text(text, *work);
    std::vector<int32_t> ids;
    const PostProcessor& around = parts_.post_processor;
    if (add_special_tokens) {
      ids.reserve(around.before.size() + work->ids.size() + around.after.size());
      ids.insert(ids.end(), around.before.begin(), around.before.end());
    }
    ids.insert(ids.end(), work->ids.begin(), work->ids.end());
    if (add_special_tokens) {
      ids.insert(ids.end(), around.after.begin(), around.after.end());
    }
    pool_.give_back(std::move(work));
    return ids;
  }

  int64_t count(std::string_view text) const override {
    std::unique_ptr<Workspace> work = pool_.take();
    encode_text(text, *work);
    const auto count = static_cast<int64_t>(work->ids.size());
    pool_.give_back(std::move(work));
    return count;
  }

  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const override {
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const int32_t id : ids) {
      if (skip_special_tokens && is_special(id)) {
        continue;
      }
      if (const AddedToken* added = parts_.added_tokens.find(id)) {
        tokens.push_back(added->content);
      } else if (const std::string* token = parts_.model->token(id)) {
        tokens.push_back(*token);
      }
    }
    return parts_.decoder.decode(std::move(tokens));
  }

  int32_t vocab_size() const override {
    return std::max(parts_.model->vocab_size(), parts_.added_tokens.end_id());
  }

  std::optional<int32_t> token_id(std::string_view token) const override {
    if (const AddedToken* added = parts_.added_tokens.find(token)) {
      return added->id;
    }
    return parts_.model->token_id(token);
  }

  bool is_special(int32_t id) const override {
    const AddedToken* added = parts_.added_tokens.find(id);
    return added != nullptr && added->special;
  }

  std::optional<int32_t> bos_id() const override {
    const std::vector<int32_t>& before = parts_.post_processor.before;
    return before.empty() ? std::nullopt : std::optional(before.front());
  }

  const std::string& content_hash() const override { return parts_.content_hash; }

 private:
  // The ids of `text` into work.ids.
  void encode_text(std::string_view text, Workspace& work) const {
    std::string repaired;
    if (!is_valid_utf8(text)) {
      repaired = to_valid_utf8(text);
      text = repaired;
    }
    parts_.added_tokens.in_raw_text().split(text, work.parts);
    for (const TextPart& part : work.parts) {
      if (part.token) {
        work.ids.push_back(*part.token);
      } else {
        encode_part(text.substr(part.begin, part.end - part.begin), part.begin == 0, work);
      }
    }
  }

  void encode_part(std::string_view text, bool at_start, Workspace& work) const {
    std::string normalized;
    if (!parts_.normalizer.is_identity()) {
      normalized = parts_.normalizer.apply(text);
      text = normalized;
    }
    const TokenMatcher& matcher = parts_.added_tokens.in_normalized_text();
    if (matcher.empty()) {
      encode_words(text, at_start, work);
      return;
    }
    work.normalized_parts.clear();
    matcher.split(text, work.normalized_parts);
    for (const TextPart& part : work.normalized_parts) {
      if (part.token) {
        work.ids.push_back(*part.token);
      } else {
        encode_words(text.substr(part.begin, part.end - part.begin), at_start && part.begin == 0,
                     work);
      }
    }
  }

  void encode_words(std::string_view text, bool at_start, Workspace& work) const {
    if (text.empty()) {
      return;
    }
    work.pieces.clear();
    work.pieces.list.push_back({text, at_start});
    parts_.pre_tokenizer.split(work.pieces);
    for (const Piece& piece : work.pieces.list) {
      if (!parts_.pre_tokenizer.leaves_bytes() && parts_.model->separates_words()) {
        encode_separated(piece.text, work);
      } else {
        encode_word(piece.text, work);
      }
    }
  }

  // One word for each run of metaspaces and what follows it.
  void encode_separated(std::string_view text, Workspace& work) const {
    const auto next_run = [&](size_t at) {  // behind the run at `at`, if there is one
      while (text.substr(at).starts_with(kMetaspace)) {
        at += kMetaspace.size();
      }
      return text.find(kMetaspace, at);
    };
    size_t begin = 0;
    for (size_t at = next_run(0); at != std::string_view::npos; at = next_run(at)) {
      encode_word(text.substr(begin, at - begin), work);
      begin = at;
    }
    encode_word(text.substr(begin), work);
  }

  void encode_word(std::string_view word, Workspace& work) const {
    if (const auto known = work.cache.find(word)) {
      work.ids.insert(work.ids.end(), known->begin(), known->end());
      return;
    }
    const size_t before = work.ids.size();
    if (!parts_.pre_tokenizer.leaves_bytes()) {
      parts_.model->encode_word(word, work.ids);
    } else if (spells_bytes_) {
      parts_.model->encode_word(to_byte_level(word), work.ids);
    } else {
      parts_.model->encode_bytes(word, work.ids);
    }
    work.cache.insert(word, std::span(work.ids).subspan(before));
  }

  TokenizerParts parts_;
  bool spells_bytes_;  // the vocabulary lacks some byte, so bytes are spelled out for it
  mutable WorkspacePool pool_;
};

// Tokens that tokenizer_config.json names as bos, eos, ... are special whatever tokenizer.json
// says.
absl::Status mark_named_tokens(const std::filesystem::path& path, AddedTokens& added) {
  KVLAB_ASSIGN_OR_RETURN(const Json config, read_json_file(path));
  if (!config.is_object()) {
    return invalid_argument("{}: should be an object", path.string());
  }
  for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token",
                           "cls_token", "mask_token"}) {
    const auto it = config.find(name);
    if (it == config.end()) {
      continue;
    }
    const Json& value = it->is_object() && it->contains("content") ? it->at("content") : *it;
    if (!value.is_string()) {
      continue;
    }
    if (const AddedToken* token = added.find(value.get_ref<const std::string&>())) {
      added.mark_special(token->id);
    }
  }
  return {};
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> tokenizer_from_json(std::string_view text,
                                                                     std::string_view origin) {
  KVLAB_ASSIGN_OR_RETURN(TokenizerParts parts, TokenizerParts::from_json(text, origin));
  return std::make_shared<const JsonTokenizer>(std::move(parts));
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::load(
    const std::filesystem::path& model_dir) {
  const std::filesystem::path path = model_dir / "tokenizer.json";
  if (!std::filesystem::exists(path)) {
    return not_found("{} is missing; {} should be a Hugging Face model directory", path.string(),
                     model_dir.string());
  }
  KVLAB_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  KVLAB_ASSIGN_OR_RETURN(TokenizerParts parts, TokenizerParts::from_json(text, path.string()));
  if (const auto config = model_dir / "tokenizer_config.json"; std::filesystem::exists(config)) {
    KVLAB_RETURN_IF_ERROR(mark_named_tokens(config, parts.added_tokens));
  }
  return std::make_shared<const JsonTokenizer>(std::move(parts));
}

}  // namespace kvlab
