#include "harness/text/pre_tokenizer.h"

#include <optional>
#include <utility>
#include <variant>

#include "harness/base/check.h"
#include "harness/text/byte_level.h"
#include "harness/text/character_class.h"
#include "harness/text/component_json.h"
#include "harness/text/split_behavior.h"
#include "harness/text/utf8.h"

namespace kvlab {

class PreTokenizer::Step {
 public:
  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  virtual ~Step() = default;
  // Appends the parts of `piece` to `out`.
  virtual void apply(const Piece& piece, Pieces& out) const = 0;
};

namespace {

constexpr std::string_view kKnown = "Split, ByteLevel, Digits, Metaspace, Sequence";

// GPT-2's words; ByteLevel brings the expression with it.
constexpr std::string_view kByteLevelWords =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

void append_parts(const Piece& piece, std::vector<Section> sections, SplitBehavior behavior,
                  Pieces& out) {
  for (const auto& [begin, end] : apply_behavior(std::move(sections), behavior)) {
    if (begin < end) {
      out.list.push_back({piece.text.substr(begin, end - begin), piece.at_start && begin == 0});
    }
  }
}

class Split final : public PreTokenizer::Step {
 public:
  Split(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(const Piece& piece, Pieces& out) const override {
    const auto* regex = std::get_if<Regex>(&pattern_);
    if (regex != nullptr && behavior_ == SplitBehavior::kIsolated) {
      isolate(piece, *regex, out);
      return;
    }
    SectionBuilder builder(piece.text.size(), invert_);
    const auto add = [&](size_t begin, size_t end) { builder.add_match(begin, end); };
    if (regex != nullptr) {
      regex->for_each_match(piece.text, add);
    } else {
      const auto& literal = std::get<std::string>(pattern_);
      for (size_t at = piece.text.find(literal); at != std::string_view::npos;
           at = piece.text.find(literal, at + literal.size())) {
        add(at, at + literal.size());
      }
    }
    append_parts(piece, builder.finish(), behavior_, out);
  }

 private:
  // The common case needs no list of sections: matches and what lies between them, one by one.
  static void isolate(const Piece& piece, const Regex& regex, Pieces& out) {
    size_t done = 0;
    const auto push = [&](size_t begin, size_t end) {
      if (begin < end) {
        out.list.push_back({piece.text.substr(begin, end - begin), piece.at_start && begin == 0});
      }
    };
    regex.for_each_match(piece.text, [&](size_t begin, size_t end) {
      push(done, begin);
      push(begin, end);
      done = end;
    });
    push(done, piece.text.size());
  }

  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class Digits final : public PreTokenizer::Step {
 public:
  explicit Digits(bool individual) : individual_(individual) {}

  void apply(const Piece& piece, Pieces& out) const override {
    SectionBuilder builder(piece.text.size(), false);
    for (size_t at = 0; at < piece.text.size();) {
      const CodePointAt here = code_point_at(piece.text, at);
      if (here.length == 1 ? piece.text[at] >= '0' && piece.text[at] <= '9'
                           : is_numeric(here.code_point)) {
        builder.add_match(at, at + here.length);
      }
      at += here.length;
    }
    append_parts(piece, builder.finish(),
                 individual_ ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, out);
  }

 private:
  bool individual_;
};

class MetaspaceStep final : public PreTokenizer::Step {
 public:
  explicit MetaspaceStep(Metaspace metaspace) : metaspace_(std::move(metaspace)) {}

  void apply(const Piece& piece, Pieces& out) const override {
    const std::string& mark = metaspace_.replacement;
    std::string text = replace_all(piece.text, " ", mark);
    const bool prepends = metaspace_.prepend == Metaspace::Prepend::kAlways ||
                          (metaspace_.prepend == Metaspace::Prepend::kFirst && piece.at_start);
    if (prepends && !text.starts_with(mark)) {
      text = mark + text;
    }
    const Piece changed{out.keep(std::move(text)), piece.at_start};
    if (!metaspace_.split) {
      out.list.push_back(changed);
      return;
    }
    SectionBuilder builder(changed.text.size(), false);
    for (size_t at = changed.text.find(mark); at != std::string_view::npos;
         at = changed.text.find(mark, at + mark.size())) {
      builder.add_match(at, at + mark.size());
    }
    append_parts(changed, builder.finish(), SplitBehavior::kMergedWithNext, out);
  }

 private:
  Metaspace metaspace_;
};

class PrefixSpace final : public PreTokenizer::Step {
 public:
  void apply(const Piece& piece, Pieces& out) const override {
    if (piece.text.starts_with(' ')) {
      out.list.push_back(piece);
    } else {
      out.list.push_back({out.keep(" " + std::string(piece.text)), piece.at_start});
    }
  }
};

class SpellBytes final : public PreTokenizer::Step {
 public:
  void apply(const Piece& piece, Pieces& out) const override {
    out.list.push_back({out.keep(to_byte_level(piece.text)), piece.at_start});
  }
};

// ByteLevel is up to three steps: a space in front, GPT-2's words, bytes as characters.
absl::Status add_byte_level(const Json& part, std::string_view where,
                            std::vector<std::unique_ptr<const PreTokenizer::Step>>& steps) {
  KVLAB_ASSIGN_OR_RETURN(const bool prefix,
                         json_get_or<bool>(part, "add_prefix_space", true, where));
  KVLAB_ASSIGN_OR_RETURN(const bool use_regex, json_get_or<bool>(part, "use_regex", true, where));
  if (prefix) {
    steps.push_back(std::make_unique<PrefixSpace>());
  }
  if (use_regex) {
    KVLAB_ASSIGN_OR_RETURN(Regex words, Regex::compile(kByteLevelWords));
    steps.push_back(std::make_unique<Split>(std::move(words), SplitBehavior::kIsolated, false));
  }
  steps.push_back(std::make_unique<SpellBytes>());
  return {};
}

absl::Status add_steps(const std::string& kind, const Json& part, std::string_view where,
                       std::vector<std::unique_ptr<const PreTokenizer::Step>>& steps) {
  if (kind == "Split") {
    KVLAB_ASSIGN_OR_RETURN(Pattern pattern, read_pattern(part, "pattern", where));
    KVLAB_ASSIGN_OR_RETURN(const std::string name, json_get<std::string>(part, "behavior", where));
    const std::optional<SplitBehavior> behavior = parse_split_behavior(name);
    if (!behavior) {
      return invalid_argument("{}.behavior should be {}, but is {}", where, kSplitBehaviors, name);
    }
    KVLAB_ASSIGN_OR_RETURN(const bool invert, json_get_or<bool>(part, "invert", false, where));
    steps.push_back(std::make_unique<Split>(std::move(pattern), *behavior, invert));
    return {};
  }
  if (kind == "ByteLevel") {
    return add_byte_level(part, where, steps);
  }
  if (kind == "Digits") {
    KVLAB_ASSIGN_OR_RETURN(const bool individual,
                           json_get_or<bool>(part, "individual_digits", false, where));
    steps.push_back(std::make_unique<Digits>(individual));
    return {};
  }
  if (kind == "Metaspace") {
    KVLAB_ASSIGN_OR_RETURN(Metaspace metaspace, read_metaspace(part, where));
    steps.push_back(std::make_unique<MetaspaceStep>(std::move(metaspace)));
    return {};
  }
  return unknown_kind(where, kind, kKnown);
}

}  // namespace

PreTokenizer::PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

absl::StatusOr<PreTokenizer> PreTokenizer::from_json(const Json& pre_tokenizer,
                                                     std::string_view where) {
  PreTokenizer made;
  if (pre_tokenizer.is_null()) {
    return made;
  }
  std::string last_kind;
  KVLAB_RETURN_IF_ERROR(
      for_each_part(pre_tokenizer, "pretokenizers", where,
                    [&](const std::string& kind, const Json& part, std::string_view part_where) {
                      last_kind = kind;
                      return add_steps(kind, part, part_where, made.steps_);
                    }));
  if (last_kind == "ByteLevel") {
    made.steps_.pop_back();  // SpellBytes: the model reads raw bytes
    made.leaves_bytes_ = true;
  }
  return made;
}

void PreTokenizer::split(Pieces& pieces) const {
  thread_local std::vector<Piece> before;
  for (const auto& step : steps_) {
    before.swap(pieces.list);
    pieces.list.clear();
    for (const Piece& piece : before) {
      step->apply(piece, pieces);
    }
  }
}

}  // namespace kvlab
