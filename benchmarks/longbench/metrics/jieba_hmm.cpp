#include "benchmarks/longbench/metrics/jieba_hmm.h"

#include <absl/status/status.h>

#include <charconv>
#include <optional>

#include "harness/base/status.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

constexpr double kImpossible = -3.14e100;  // jieba's stand-in for log 0
constexpr std::string_view kStateNames = "BEMS";
constexpr size_t kB = 0;
constexpr size_t kE = 1;
constexpr size_t kM = 2;
constexpr size_t kS = 3;

// Which states may stand before B, E, M and S.
constexpr std::array<std::array<size_t, 2>, 4> kBefore = {{{kE, kS}, {kB, kM}, {kB, kM}, {kE, kS}}};

std::vector<std::string_view> split_tabs(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

constexpr size_t kNoState = std::string_view::npos;

size_t state_of(std::string_view name) {
  return name.size() == 1 ? kStateNames.find(name[0]) : kNoState;
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

bool is_ascii_alphanumeric(char32_t c) {
  return (c >= U'0' && c <= U'9') || (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
}

bool is_ascii_digit(char32_t c) { return c >= U'0' && c <= U'9'; }

// Splits at "([a-zA-Z0-9]+(?:\.\d+)?%?)" and appends every part that is not empty.
void cut_ascii(std::u32string_view run, std::vector<std::u32string_view>& words) {
  size_t other_begin = 0;
  for (size_t i = 0; i < run.size();) {
    if (!is_ascii_alphanumeric(run[i])) {
      ++i;
      continue;
    }
    if (i > other_begin) {
      words.push_back(run.substr(other_begin, i - other_begin));
    }
    size_t end = i;
    while (end < run.size() && is_ascii_alphanumeric(run[end])) {
      ++end;
    }
    if (end + 1 < run.size() && run[end] == U'.' && is_ascii_digit(run[end + 1])) {
      ++end;
      while (end < run.size() && is_ascii_digit(run[end])) {
        ++end;
      }
    }
    if (end < run.size() && run[end] == U'%') {
      ++end;
    }
    words.push_back(run.substr(i, end - i));
    i = end;
    other_begin = end;
  }
  if (other_begin < run.size()) {
    words.push_back(run.substr(other_begin));
  }
}

}  // namespace

absl::StatusOr<JiebaHmm> JiebaHmm::parse(std::string_view text, std::string_view origin) {
  JiebaHmm hmm;
  hmm.start_.fill(kImpossible);
  for (auto& row : hmm.transition_) {
    row.fill(kImpossible);
  }
  size_t line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    const std::vector<std::string_view> fields = split_tabs(line);
    const size_t state = fields.size() >= 3 ? state_of(fields[1]) : kNoState;
    const std::optional<double> value = number_of(fields.back());
    const bool understood = state != kNoState && value.has_value();
    if (understood && fields[0] == "start" && fields.size() == 3) {
      hmm.start_[state] = *value;
    } else if (understood && fields[0] == "trans" && fields.size() == 4 &&
               state_of(fields[2]) != kNoState) {
      hmm.transition_[state][state_of(fields[2])] = *value;
    } else if (understood && fields[0] == "emit" && fields.size() == 4 &&
               is_valid_utf8(fields[2]) && to_code_points(fields[2]).size() == 1) {
      hmm.emission_[state][to_code_points(fields[2])[0]] = *value;
    } else {
      return data_loss(
          "{}, line {}: not a line of jieba's model (start, trans or emit): run "
          "scripts/fetch_jieba.py again",
          origin, line_number);
    }
  }
  for (const auto& emission : hmm.emission_) {
    if (emission.empty()) {
      return data_loss("{}: the model is incomplete: run scripts/fetch_jieba.py again", origin);
    }
  }
  return hmm;
}

void JiebaHmm::cut(std::u32string_view run, std::vector<std::u32string_view>& words) const {
  for (size_t i = 0; i < run.size();) {
    const bool han = is_jieba_han(run[i]);
    size_t end = i;
    while (end < run.size() && is_jieba_han(run[end]) == han) {
      ++end;
    }
    if (han) {
      cut_han(run.substr(i, end - i), words);
    } else {
      cut_ascii(run.substr(i, end - i), words);
    }
    i = end;
  }
}

void JiebaHmm::cut_han(std::u32string_view run, std::vector<std::u32string_view>& words) const {
  const auto emission = [&](size_t state, char32_t c) {
    const auto it = emission_[state].find(c);
    return it == emission_[state].end() ? kImpossible : it->second;
  };
  // Viterbi; among equal probabilities the later state letter wins, as Python's max() of
  // (probability, letter) pairs does.
  std::array<double, kStates> best{};
  for (size_t state = 0; state < kStates; ++state) {
    best[state] = start_[state] + emission(state, run[0]);
  }
  std::vector<std::array<size_t, kStates>> came_from(run.size());
  for (size_t t = 1; t < run.size(); ++t) {
    std::array<double, kStates> next{};
    for (size_t state = 0; state < kStates; ++state) {
      const double emitted = emission(state, run[t]);
      const auto [low, high] = kBefore[state];
      const double from_low = best[low] + transition_[low][state] + emitted;
      const double from_high = best[high] + transition_[high][state] + emitted;
      const bool take_high = from_high >= from_low;
      next[state] = take_high ? from_high : from_low;
      came_from[t][state] = take_high ? high : low;
    }
    best = next;
  }
  std::vector<size_t> states(run.size());
  states.back() = best[kS] >= best[kE] ? kS : kE;
  for (size_t t = run.size() - 1; t > 0; --t) {
    states[t - 1] = came_from[t][states[t]];
  }
  size_t begin = 0;
  size_t covered = 0;
  for (size_t i = 0; i < run.size(); ++i) {
    if (states[i] == kB) {
      begin = i;
    } else if (states[i] == kE) {
      words.push_back(run.substr(begin, i + 1 - begin));
      covered = i + 1;
    } else if (states[i] == kS) {
      words.push_back(run.substr(i, 1));
      covered = i + 1;
    }
  }
  if (covered < run.size()) {
    words.push_back(run.substr(covered));
  }
}

}  // namespace kvlab
