#include <fmt/format.h>

#include "benchmarks/ruler/prompt_maker.h"
#include "datasets/python_random.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr size_t kCommon = 10;  // words to be found

struct Repeats {
  size_t common;
  size_t uncommon;
};

class CommonWordsMaker final : public PromptMaker {
 public:
  CommonWordsMaker(const RulerSources& sources, uint64_t seed, bool below_4096)
      : english_(sources.english),
        seed_(seed),
        random_(seed),
        words_(sources.words->all_words()),
        example_words_(below_4096 ? 20 : 40),
        example_repeats_(below_4096 ? Repeats{3, 1} : Repeats{10, 3}),
        repeats_(below_4096 ? Repeats{6, 1} : Repeats{30, 3}) {
    shuffle_with_seed(seed, words_);
  }

  absl::StatusOr<RulerPrompt> make(int64_t size, int64_t index) override {
    (void)index;
    KVLAB_ASSIGN_OR_RETURN(const List example, draw_list(example_words_, example_repeats_));
    KVLAB_ASSIGN_OR_RETURN(const List list, draw_list(static_cast<size_t>(size), repeats_));
    RulerPrompt prompt;
    prompt.answer_prefix = " Answer: The top 10 words that appear most often in the list are:";
    prompt.user_text =
        fmt::format("{}{} {}\n{}", question_about(example.text), prompt.answer_prefix,
                    numbered(example.common), question_about(list.text));
    prompt.outputs = list.common;
    return prompt;
  }

 private:
  struct List {
    std::string text;
    std::vector<std::string> common;
  };

  static std::string question_about(std::string_view list) {
    return fmt::format(
        "Below is a numbered list of words. In these words, some appear more often than others. "
        "Memorize the ones that appear most often.\n{}\nQuestion: What are the 10 most common "
        "words in the above list?",
        list);
  }

  static std::string numbered(const std::vector<std::string>& words) {
    std::string text;
    for (size_t i = 0; i < words.size(); ++i) {
      fmt::format_to(std::back_inserter(text), "{}{}. {}", i == 0 ? "" : " ", i + 1, words[i]);
    }
    return text;
  }

  absl::StatusOr<List> draw_list(size_t count, Repeats repeats) {
    if (count > words_.size() && (english_ == nullptr || count > english_->words.size())) {
      return not_found(
          "a list of {} different words is needed, but the word lists hold {}{}; put "
          "english_words.json or words_alpha.txt into the folder of --wordlists",
          count, words_.size(),
          english_ == nullptr ? std::string() : fmt::format(" and {}", english_->words.size()));
    }
    const std::vector<std::string>& pool = count <= words_.size() ? words_ : english_->words;
    std::vector<std::string> all;
    List list;
    const std::vector<size_t> drawn = random_.sample(pool.size(), count);
    const size_t num_common = std::min(kCommon, count);
    for (size_t i = 0; i < num_common; ++i) {
      list.common.push_back(pool[drawn[i]]);
    }
    for (size_t repeat = 0; repeat < repeats.common; ++repeat) {
      all.insert(all.end(), list.common.begin(), list.common.end());
    }
    for (size_t repeat = 0; repeat < repeats.uncommon; ++repeat) {
      for (size_t i = num_common; i < count; ++i) {
        all.push_back(pool[drawn[i]]);
      }
    }
    shuffle_with_seed(seed_, all);
    list.text = numbered(all);
    return list;
  }

  std::shared_ptr<const EnglishWords> english_;
  uint64_t seed_;
  PythonRandom random_;
  std::vector<std::string> words_;
  size_t example_words_;
  Repeats example_repeats_;
  Repeats repeats_;
};

}  // namespace

std::unique_ptr<PromptMaker> make_common_words_maker(const RulerSources& sources, uint64_t seed,
                                                     bool below_4096) {
  return std::make_unique<CommonWordsMaker>(sources, seed, below_4096);
}

}  // namespace kvlab
