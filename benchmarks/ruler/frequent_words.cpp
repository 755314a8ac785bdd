#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "benchmarks/ruler/prompt_maker.h"
#include "datasets/python_random.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr std::string_view kLowerLetters = "abcdefghijklmnopqrstuvwxyz";
constexpr size_t kWordLength = 6;
constexpr double kAlpha = 2.0;
constexpr double kZetaOfAlpha = 1.6449340668482264;  // as SciPy's zeta(2.0)

class RulerFrequentWordsMaker final : public FrequentWordsMaker {
 public:
  RulerFrequentWordsMaker(uint64_t seed, int64_t vocabulary)
      : seed_(seed), random_(seed), vocabulary_size_(static_cast<size_t>(vocabulary)) {}

  void redraw() override {
    std::set<std::string> words;
    size_t drawn = 0;
    while (drawn < vocabulary_size_ || words.size() < vocabulary_size_) {
      words.insert(random_.letters(kLowerLetters, kWordLength));
      ++drawn;
    }
    vocabulary_.assign(words.begin(), words.end());
    shuffle_with_seed(seed_, vocabulary_);
    vocabulary_[0] = "...";  // the most frequent word is noise
  }

  absl::StatusOr<RulerPrompt> make(int64_t size, int64_t index) override {
    (void)index;
    std::vector<std::string_view> coded;
    for (size_t rank = 1; rank <= vocabulary_.size(); ++rank) {
      const double share = std::pow(static_cast<double>(rank), -kAlpha);
      const double count = static_cast<double>(size) * share / kZetaOfAlpha;
      coded.insert(coded.end(), static_cast<size_t>(count), vocabulary_[rank - 1]);
    }
    shuffle_with_seed(seed_, coded);
    RulerPrompt prompt;
    prompt.user_text = fmt::format(
        "Read the following coded text and track the frequency of each coded word. Find the three "
        "most frequently appeared coded words. {}\nQuestion: Do not provide any explanation. "
        "Please ignore the dots '....'. What are the three most frequently appeared words in the "
        "above coded text?",
        fmt::join(coded, " "));
    prompt.answer_prefix =
        " Answer: According to the coded text above, the three most frequently appeared words "
        "are:";
    prompt.outputs.assign(vocabulary_.begin() + 1, vocabulary_.begin() + 4);
    return prompt;
  }

 private:
  uint64_t seed_;
  PythonRandom random_;
  size_t vocabulary_size_;
  std::vector<std::string> vocabulary_;
};

}  // namespace

std::unique_ptr<FrequentWordsMaker> FrequentWordsMaker::create(uint64_t seed, int64_t vocabulary) {
  return std::make_unique<RulerFrequentWordsMaker>(seed, vocabulary);
}

}  // namespace kvlab
