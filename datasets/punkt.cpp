#include "datasets/punkt.h"

#include <utf8proc.h>

#include <array>
#include <charconv>
#include <optional>

#include "harness/base/files.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"
#include "harness/text/python_text.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

// Where a word type was seen when the parameters were trained, as bits of ortho_context.tab.
constexpr uint32_t kBeginUpper = 1u << 1;
constexpr uint32_t kMiddleUpper = 1u << 2;
constexpr uint32_t kUnknownUpper = 1u << 3;
constexpr uint32_t kBeginLower = 1u << 4;
constexpr uint32_t kMiddleLower = 1u << 5;
constexpr uint32_t kUnknownLower = 1u << 6;
constexpr uint32_t kUpper = kBeginUpper | kMiddleUpper | kUnknownUpper;
constexpr uint32_t kLower = kBeginLower | kMiddleLower | kUnknownLower;

constexpr std::string_view kNumberType = "##number##";

bool contains(std::u32string_view set, char32_t c) { return set.find(c) != set.npos; }
bool ends_sentence(char32_t c) { return contains(U".?!", c); }
bool is_outside_words(char32_t c) { return contains(U")\";}]*:@'({[?!", c); }
bool may_start_word(char32_t c) { return !contains(U"(\"`{[:;&#*@)}]-,", c); }
bool is_closing(char32_t c) { return contains(U"\"')]}", c); }
bool is_ascii_space(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// A word character of Python's `re` that is no decimal digit.
bool is_letter(char32_t c) { return is_python_word_character(c) && !is_python_digit(c); }

// Length of a run of hyphens, of full stops, or of full stops with single white space between
// them, where one starts at `at`; 0 otherwise.
size_t multi_character_punctuation(std::u32string_view text, size_t at) {
  for (const char32_t mark : {U'-', U'.'}) {
    size_t end = at;
    while (end < text.size() && text[end] == mark) {
      ++end;
    }
    if (end - at >= 2) {
      return end - at;
    }
  }
  size_t pairs = 0;
  const auto stop_at = [&](size_t i) { return i < text.size() && text[i] == '.'; };
  while (stop_at(at + 2 * pairs) && at + 2 * pairs + 1 < text.size() &&
         is_python_space(text[at + 2 * pairs + 1])) {
    ++pairs;
  }
  if (pairs >= 2 && stop_at(at + 2 * pairs)) {
    return 2 * pairs + 1;
  }
  return pairs >= 3 ? 2 * pairs - 1 : 0;
}

bool ends_word_here(std::u32string_view text, size_t at, bool comma_allowed) {
  if (at == text.size() || is_python_space(text[at]) || is_outside_words(text[at]) ||
      multi_character_punctuation(text, at) > 0) {
    return true;
  }
  return comma_allowed && text[at] == ',' && ends_word_here(text, at + 1, false);
}

// Splits punctuation other than full stops from the words of one line.
std::vector<std::u32string_view> words_of_line(std::u32string_view line) {
  std::vector<std::u32string_view> words;
  for (size_t at = 0; at < line.size();) {
    size_t length = multi_character_punctuation(line, at);
    if (length == 0 && is_python_space(line[at])) {
      ++at;
      continue;
    }
    if (length == 0) {
      length = 1;
      while (may_start_word(line[at]) && !ends_word_here(line, at + length, true)) {
        ++length;
      }
    }
    words.push_back(line.substr(at, length));
    at += length;
  }
  return words;
}

// -?[.,]?\d[\d,.-]*\.? over the whole text.
bool is_number(std::u32string_view text) {
  size_t at = 0;
  if (at < text.size() && text[at] == '-') {
    ++at;
  }
  if (at < text.size() && (text[at] == '.' || text[at] == ',')) {
    ++at;
  }
  if (at == text.size() || !is_python_digit(text[at])) {
    return false;
  }
  while (at < text.size() && (is_python_digit(text[at]) || contains(U",.-", text[at]))) {
    ++at;
  }
  return at == text.size();
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    lines.push_back(text.substr(0, newline));
    text.remove_prefix(newline == text.npos ? text.size() : newline + 1);
  }
  return lines;
}

}  // namespace

struct PunktSplitter::Token {
  std::u32string_view text;
  std::string type;  // lower case; ##number## for numbers
  bool ends_with_stop = false;
  bool sentence_break = false;
  bool abbreviation = false;
  bool ellipsis = false;

  std::string type_without_stop() const {
    return type.size() > 1 && type.back() == '.' ? type.substr(0, type.size() - 1) : type;
  }
  std::string type_in_sentence() const { return sentence_break ? type_without_stop() : type; }
  bool starts_upper() const {
    return utf8proc_isupper(static_cast<utf8proc_int32_t>(text.front())) != 0;
  }
  bool starts_lower() const {
    return utf8proc_islower(static_cast<utf8proc_int32_t>(text.front())) != 0;
  }
  bool is_initial() const { return text.size() == 2 && is_letter(text[0]) && text[1] == '.'; }
};

absl::StatusOr<PunktSplitter> PunktSplitter::load(const std::filesystem::path& dir) {
  constexpr std::array<std::string_view, 4> kFiles = {"abbrev_types.txt", "collocations.tab",
                                                      "ortho_context.tab", "sent_starters.txt"};
  std::filesystem::path folder = dir;
  if (!std::filesystem::exists(folder / kFiles[0])) {
    folder /= "english";
  }
  std::array<std::string, 4> contents;
  std::string all;
  for (size_t i = 0; i < kFiles.size(); ++i) {
    KVLAB_ASSIGN_OR_RETURN(contents[i], read_file(folder / kFiles[i]));
    contents[i] = to_valid_utf8(contents[i]);
    all += contents[i];
    all += '\0';
  }
  PunktSplitter splitter;
  splitter.content_hash_ = sha256_hex(all);
  for (const std::string_view line : lines_of(contents[0])) {
    splitter.abbreviations_.emplace(line);
  }
  for (const std::string_view line : lines_of(contents[1])) {
    const size_t tab = line.find('\t');
    if (tab == line.npos) {
      return data_loss("{}: '{}' is no pair of words with a tab between them",
                       (folder / kFiles[1]).string(), line);
    }
    splitter.collocations_.emplace(line.substr(0, tab), line.substr(tab + 1));
  }
  for (const std::string_view line : lines_of(contents[2])) {
    const size_t tab = line.find('\t');
    uint32_t bits = 0;
    const std::string_view number = tab == line.npos ? "" : line.substr(tab + 1);
    const char* end = number.data() + number.size();
    if (number.empty() || std::from_chars(number.data(), end, bits).ptr != end) {
      return data_loss("{}: '{}' is no word and number with a tab between them",
                       (folder / kFiles[2]).string(), line);
    }
    splitter.orthography_[std::string(line.substr(0, tab))] = bits;
  }
  for (const std::string_view line : lines_of(contents[3])) {
    splitter.sentence_starters_.emplace(line);
  }
  return splitter;
}

uint32_t PunktSplitter::orthography(const Token& token) const {
  const auto found = orthography_.find(token.type_in_sentence());
  return found == orthography_.end() ? 0 : found->second;
}

// First judgement, by the token alone.
PunktSplitter::Token PunktSplitter::make_token(std::u32string_view text) const {
  Token token;
  token.text = text;
  const std::u32string lowered = python_lower(text);
  token.type = is_number(lowered) ? std::string(kNumberType) : to_utf8(lowered);
  token.ends_with_stop = text.back() == '.';
  const bool only_stops = text.find_first_not_of(U'.') == text.npos;
  if (text.size() == 1 && ends_sentence(text[0])) {
    token.sentence_break = true;
  } else if (only_stops) {
    token.ellipsis = true;
  } else if (token.ends_with_stop && text[text.size() - 2] != '.') {
    const std::string word = to_utf8(std::u32string_view(lowered).substr(0, lowered.size() - 1));
    token.abbreviation =
        abbreviations_.contains(word) || abbreviations_.contains(word.substr(word.rfind('-') + 1));
    token.sentence_break = !token.abbreviation;
  }
  return token;
}

PunktSplitter::Start PunktSplitter::starts_sentence(const Token& token) const {
  if (token.text.size() == 1 && contains(U";:,.!?", token.text[0])) {
    return Start::kNo;
  }
  const uint32_t seen = orthography(token);
  if (token.starts_upper() && (seen & kLower) != 0 && (seen & kMiddleUpper) == 0) {
    return Start::kYes;
  }
  if (token.starts_lower() && ((seen & kUpper) != 0 || (seen & kBeginLower) == 0)) {
    return Start::kNo;
  }
  return Start::kUnknown;
}

// Second judgement, by the token that follows.
void PunktSplitter::reconsider(Token& token, const Token& next) const {
  if (!token.ends_with_stop) {
    return;
  }
  const std::string type = token.type_without_stop();
  const std::string next_type = next.type_in_sentence();
  const auto mark_abbreviation = [&token] {
    token.sentence_break = false;
    token.abbreviation = true;
  };
  if (collocations_.contains({type, next_type})) {
    mark_abbreviation();
    return;
  }
  const bool initial = token.is_initial();
  if ((token.abbreviation || token.ellipsis) && !initial) {
    if (starts_sentence(next) == Start::kYes ||
        (next.starts_upper() && sentence_starters_.contains(next_type))) {
      token.sentence_break = true;
      return;
    }
  }
  if (initial || type == kNumberType) {
    const Start start = starts_sentence(next);
    if (start == Start::kNo) {
      mark_abbreviation();
    } else if (start == Start::kUnknown && initial && next.starts_upper() &&
               (orthography(next) & kLower) == 0) {
      mark_abbreviation();
    }
  }
}

bool PunktSplitter::has_break_before_last_token(std::u32string_view context) const {
  std::vector<Token> tokens;
  while (!context.empty()) {
    const size_t newline = context.find(U'\n');
    for (const std::u32string_view word : words_of_line(context.substr(0, newline))) {
      tokens.push_back(make_token(word));
    }
    context.remove_prefix(newline == context.npos ? context.size() : newline + 1);
  }
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    reconsider(tokens[i], tokens[i + 1]);
    if (tokens[i].sentence_break) {
      return true;
    }
  }
  return false;
}

// Spans between the breaks, before closing punctuation is moved to the sentence it ends.
std::vector<PunktSplitter::Span> PunktSplitter::break_spans(std::u32string_view text) const {
  // A mark that may end a sentence, the word in front of it, and what follows it.
  struct Candidate {
    size_t mark = 0;
    Span word;
    size_t context_end = 0;
    std::optional<size_t> next_word;
  };
  std::vector<Span> spans;
  size_t begin = 0;
  const auto judge = [&](const Candidate& candidate) {
    const size_t context_begin = candidate.word.begin;
    if (has_break_before_last_token(
            text.substr(context_begin, candidate.context_end - context_begin))) {
      spans.push_back({begin, candidate.mark + 1});
      begin = candidate.next_word.value_or(candidate.mark + 1);
    }
  };
  std::optional<Candidate> previous;
  for (size_t mark = 0; mark < text.size(); ++mark) {
    if (!ends_sentence(text[mark])) {
      continue;
    }
    size_t after = mark + 1;
    std::optional<size_t> next_word;
    if (after < text.size() && is_outside_words(text[after])) {
      ++after;
    } else {
      while (after < text.size() && is_python_space(text[after])) {
        ++after;
      }
      if (after == mark + 1 || after == text.size()) {
        continue;
      }
      next_word = after;
      while (after < text.size() && !is_python_space(text[after])) {
        ++after;
      }
    }
    const Span last = previous ? previous->word : Span{};
    // The word starts after the last ASCII white space behind the previous candidate's word. NLTK
    // takes white space right at that end for none found, and then starts at the previous word.
    size_t word_begin = last.begin;
    for (size_t i = mark; i-- > last.end + 1;) {
      if (is_ascii_space(text[i])) {
        word_begin = i + 1;
        break;
      }
    }
    if (previous && last.end <= word_begin) {
      judge(*previous);
    }
    previous = Candidate{mark, {word_begin, mark}, after, next_word};
  }
  if (previous) {
    judge(*previous);
  }
  size_t end = text.size();
  while (end > 0 && is_python_space(text[end - 1])) {
    --end;
  }
  spans.push_back({begin, end});
  return spans;
}

std::vector<std::string> PunktSplitter::sentences(std::string_view utf8) const {
  const std::u32string storage = to_code_points(utf8);
  const std::u32string_view text = storage;
  const std::vector<Span> spans = break_spans(text);
  std::vector<std::string> sentences;
  const auto keep = [&](size_t begin, size_t end) {
    if (begin < end) {
      sentences.push_back(to_utf8(text.substr(begin, end - begin)));
    }
  };
  size_t moved = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    const size_t begin = spans[i].begin + moved;
    moved = 0;
    if (i + 1 == spans.size()) {
      keep(begin, spans[i].end);
      break;
    }
    // Closing punctuation at the start of the next span belongs to this sentence when white
    // space, a dash or the span's end follows it.
    const std::u32string_view next = text.substr(
        spans[i + 1].begin, std::max(spans[i + 1].end, spans[i + 1].begin) - spans[i + 1].begin);
    size_t closing = 0;
    while (closing < next.size() && is_closing(next[closing])) {
      ++closing;
    }
    size_t after = closing;
    while (after < next.size() && is_python_space(next[after])) {
      ++after;
    }
    if (closing > 0 &&
        (after > closing || closing == next.size() || next.substr(closing, 2) == U"--")) {
      keep(begin, spans[i + 1].begin + closing);
      moved = after;
    } else {
      keep(begin, spans[i].end);
    }
  }
  return sentences;
}

}  // namespace kvlab
