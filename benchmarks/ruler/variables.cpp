#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "benchmarks/ruler/noise.h"
#include "benchmarks/ruler/prompt_maker.h"
#include "datasets/python_random.h"
#include "harness/base/status.h"
#include "harness/text/replace.h"

namespace kvlab {
namespace {

constexpr std::string_view kUpperLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr size_t kHops = 4;
constexpr std::string_view kExampleValue = "12345";

class RulerVariableMaker final : public VariableMaker {
 public:
  explicit RulerVariableMaker(uint64_t seed) : random_(seed), numpy_(static_cast<uint32_t>(seed)) {}

  absl::StatusOr<RulerPrompt> make(int64_t size, int64_t index) override {
    (void)index;
    const bool is_example = example_text_.empty();
    std::vector<std::string> names;
    for (size_t i = 0; i <= kHops; ++i) {
      names.push_back(random_.letters(kUpperLetters, is_example ? 3 : 5));
    }
    if (std::unordered_set<std::string>(names.begin(), names.end()).size() < names.size()) {
      // The original draws more names then, and stops on the incomplete second chain they make.
      while (std::unordered_set<std::string>(names.begin(), names.end()).size() <= kHops) {
        names.push_back(random_.letters(kUpperLetters, is_example ? 3 : 5));
      }
      draw_value(is_example);  // of the first chain
      draw_value(is_example);  // of the second
      return invalid_argument("two variables were given the same name");
    }
    const std::string value = draw_value(is_example);
    std::vector<std::string> chain = {fmt::format("VAR {} = {}", names[0], value)};
    for (size_t i = 0; i < kHops; ++i) {
      chain.push_back(fmt::format("VAR {} = VAR {} ", names[i + 1], names[i]));
    }

    std::vector<std::string> lines(static_cast<size_t>(size), std::string(kRulerNoise));
    if (lines.size() < chain.size()) {
      return invalid_argument("{} assignments need as many lines; there are {}", chain.size(),
                              size);
    }
    std::vector<size_t> positions = random_.sample(lines.size(), chain.size());
    std::sort(positions.begin(), positions.end());
    for (size_t i = 0; i < chain.size(); ++i) {
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(positions[i] + i), chain[i]);
    }
    const std::string context =
        replace_all(fmt::format("{}", fmt::join(lines, "\n")), ". \n", ".\n");

    RulerPrompt prompt;
    prompt.user_text = fmt::format(
        "Memorize and track the chain(s) of variable assignment hidden in the following "
        "text.\n\n{}\nQuestion: Find all variables that are assigned the value {} in the text "
        "above.",
        context, value);
    prompt.answer_prefix = fmt::format(
        " Answer: According to the chain(s) of variable assignment in the text above, {} variables "
        "are assigned the value {}, they are: ",
        kHops + 1, value);
    prompt.outputs = names;
    return prompt;
  }

  void use_example(const RulerPrompt& example) override {
    example_names_ = example.outputs;
    example_text_ = fmt::format("{}{} {}\n", example.user_text, example.answer_prefix,
                                fmt::join(example.outputs, " "));
  }

  void finish(RulerPrompt& prompt) override {
    if (!example_text_.empty()) {
      prompt.user_text = redrawn_example() + "\n" + prompt.user_text;
    }
  }

  std::string_view reserved_text() const override { return example_text_; }

 private:
  std::string draw_value(bool is_example) {
    return is_example ? std::string(kExampleValue) : std::to_string(numpy_.randint(10000, 99999));
  }

  // Names are replaced one after the other wherever they occur, as the original does.
  std::string redrawn_example() {
    std::string text = example_text_;
    for (const std::string& name : example_names_) {
      text = replace_all(text, name, random_.letters(kUpperLetters, name.size()));
    }
    return replace_all(text, kExampleValue, draw_value(false));
  }

  PythonRandom random_;
  NumpyLegacyRandom numpy_;
  std::string example_text_;
  std::vector<std::string> example_names_;
};

}  // namespace

std::unique_ptr<VariableMaker> VariableMaker::create(uint64_t seed) {
  return std::make_unique<RulerVariableMaker>(seed);
}

}  // namespace kvlab
