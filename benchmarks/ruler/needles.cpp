#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "benchmarks/ruler/noise.h"
#include "benchmarks/ruler/prompt_maker.h"
#include "datasets/python_random.h"
#include "datasets/sentences.h"
#include "harness/base/status.h"
#include "harness/text/python_utf8.h"

namespace kvlab {
namespace {

// round(linspace(0, 100, 40)), ties to even: the depths in per cent that needles go to.
constexpr std::array<int, 40> kDepths = {0,  3,  5,  8,  10, 13, 15, 18, 21, 23, 26, 28, 31, 33,
                                         36, 38, 41, 44, 46, 49, 51, 54, 56, 59, 62, 64, 67, 69,
                                         72, 74, 77, 79, 82, 85, 87, 90, 92, 95, 97, 100};

std::string_view plural_of(NeedleToken type) {
  switch (type) {
    case NeedleToken::kWord:
      return "words";
    case NeedleToken::kNumber:
      return "numbers";
    case NeedleToken::kUuid:
      return "uuids";
  }
  return {};
}

std::string uuid4(PythonRandom& random) {
  auto [high, low] = random.bits_128();
  high = (high & ~uint64_t{0xf000}) | 0x4000;                          // version 4
  low = (low & ~(uint64_t{0xc000} << 48)) | (uint64_t{0x8000} << 48);  // variant
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffff);
}

class NeedleMaker final : public PromptMaker {
 public:
  NeedleMaker(const RulerTask& task, const RulerSources& sources, uint64_t seed)
      : task_(task), sources_(sources), seed_(seed), random_(seed) {}

  absl::StatusOr<RulerPrompt> make(int64_t size, int64_t index) override {
    (void)index;
    const size_t num_keys = std::max(task_.keys, task_.queries);
    std::vector<std::string> keys;
    std::vector<std::vector<std::string>> values;
    std::vector<std::string> needles;
    for (size_t i = 0; i < num_keys; ++i) {
      keys.push_back(draw(task_.key));
      values.emplace_back();
      for (size_t j = 0; j < task_.values; ++j) {
        values.back().push_back(draw(task_.value));
        needles.push_back(needle(keys.back(), values.back().back()));
      }
    }
    shuffle_with_seed(seed_, needles);
    KVLAB_ASSIGN_OR_RETURN(const std::string context,
                           task_.filler == NeedleFiller::kEssay
                               ? absl::StatusOr<std::string>(in_essay(size, needles))
                               : between_lines(size, needles));

    std::vector<std::string> queries;
    RulerPrompt prompt;
    for (const size_t i : random_.sample(num_keys, task_.queries)) {
      queries.push_back(keys[i]);
      prompt.outputs.insert(prompt.outputs.end(), values[i].begin(), values[i].end());
    }
    std::string query = queries[0];
    for (size_t i = 1; i < queries.size(); ++i) {
      query += (i + 1 == queries.size() ? ", and " : ", ") + queries[i];
    }
    const bool single = task_.queries * task_.values == 1;
    const std::string plural(plural_of(task_.value));
    const std::string type = single ? plural.substr(0, plural.size() - 1) : plural;
    prompt.user_text = fmt::format(
        "{} special magic {} {} hidden within the following text. Make sure to memorize it. I will "
        "quiz you about the {} afterwards.\n{}\nWhat {} the special magic {} for {} mentioned in "
        "the provided text?",
        single ? "A" : "Some", type, single ? "is" : "are", type, context,
        single ? "is" : "are all", type, query);
    prompt.answer_prefix =
        fmt::format(" The special magic {} for {} mentioned in the provided text {}", type, query,
                    single ? "is" : "are");
    return prompt;
  }

 private:
  std::string draw(NeedleToken type) {
    switch (type) {
      case NeedleToken::kWord:
        return sources_.pairs->at(random_.below(sources_.pairs->size()));
      case NeedleToken::kNumber:
        return std::to_string(random_.randint(1'000'000, 9'999'999));
      case NeedleToken::kUuid:
        return uuid4(random_);
    }
    return {};
  }

  std::string needle(std::string_view key, std::string_view value) const {
    return fmt::format("One of the special magic {} for {} is: {}.", plural_of(task_.value), key,
                       value);
  }

  // Sentences of the first `size` words; the text starts again where it runs out.
  const std::vector<std::string>& sentences(int64_t size) {
    constexpr size_t kKept = 8;
    if (const auto found = sentences_.find(size); found != sentences_.end()) {
      return found->second;
    }
    if (sentences_.size() == kKept) {
      sentences_.clear();
    }
    const std::vector<std::string>& words = sources_.haystack->words;
    std::string text;
    for (size_t i = 0; i < static_cast<size_t>(size); ++i) {
      text += i == 0 ? "" : " ";
      text += words[i % words.size()];
    }
    const std::string_view stripped = python_strip(text);
    return sentences_[size] = sources_.punkt != nullptr ? sources_.punkt->sentences(stripped)
                                                        : simple_sentences(stripped);
  }

  std::string in_essay(int64_t size, const std::vector<std::string>& needles) {
    const std::vector<std::string>& text = sentences(size);
    std::vector<size_t> positions;
    for (const size_t i : random_.sample(kDepths.size(), needles.size())) {
      // The order of operations decides the rounding: length * (depth / 100).
      positions.push_back(
          static_cast<size_t>(static_cast<double>(text.size()) * (kDepths[i] / 100.0)));
    }
    std::sort(positions.begin(), positions.end());
    positions.push_back(text.size());
    std::string context;
    size_t at = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
      // An empty stretch still gets its separating space, as joining an empty string gives.
      context += i == 0 ? "" : " ";
      for (bool first = true; at < positions[i]; ++at, first = false) {
        context += first ? "" : " ";
        context += text[at];
      }
      if (i < needles.size()) {
        context += " " + needles[i];
      }
    }
    return context;
  }

  absl::StatusOr<std::string> between_lines(int64_t size, const std::vector<std::string>& needles) {
    std::vector<std::string> lines(static_cast<size_t>(size));
    for (std::string& line : lines) {
      if (task_.filler == NeedleFiller::kNoise) {
        line = kRulerNoise;
      } else {
        const std::string key = draw(task_.key);
        line = needle(key, draw(task_.value));
      }
    }
    if (lines.size() < needles.size()) {
      return invalid_argument("{} needles need as many lines; there are {}", needles.size(), size);
    }
    std::vector<size_t> positions = random_.sample(lines.size(), needles.size());
    std::sort(positions.rbegin(), positions.rend());
    for (size_t i = 0; i < needles.size(); ++i) {
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(positions[i]), needles[i]);
    }
    return fmt::format("{}", fmt::join(lines, "\n"));
  }

  RulerTask task_;
  RulerSources sources_;
  uint64_t seed_;
  PythonRandom random_;
  std::map<int64_t, std::vector<std::string>> sentences_;
};

}  // namespace

std::unique_ptr<PromptMaker> make_needle_maker(const RulerTask& task, const RulerSources& sources,
                                               uint64_t seed) {
  return std::make_unique<NeedleMaker>(task, sources, seed);
}

}  // namespace kvlab
