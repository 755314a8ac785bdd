#include "benchmarks/ruler/needle_grid.h"

#include <fmt/format.h>

#include "benchmarks/ruler/options.h"
#include "benchmarks/ruler/scorer.h"
#include "datasets/python_random.h"
#include "datasets/sentences.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr int kVersion = 1;
constexpr int64_t kReplyTokens = 64;

std::string task_of(int64_t depth) { return fmt::format("depth_{:03}", depth); }

// Fills texts of one length with a needle at a sentence border.
class GridMaker {
 public:
  GridMaker(const RulerSources& sources, const WordPairs& pairs, const Tokenizer& tokenizer,
            const PromptFormat* format)
      : sources_(sources), pairs_(pairs), tokenizer_(tokenizer), format_(format) {}

  // Splits enough text for prompts of `length` tokens: a word has at least one token. The haystack
  // starts again where it runs out.
  void set_length(int64_t length) {
    length_ = length;
    const std::vector<std::string>& words = sources_.haystack->words;
    std::string text;
    for (size_t i = 0; i < static_cast<size_t>(length); ++i) {
      text += (i == 0 ? "" : " ") + words[i % words.size()];
    }
    sentences_ =
        sources_.punkt != nullptr ? sources_.punkt->sentences(text) : simple_sentences(text);
  }

  absl::StatusOr<Sample> make(int64_t depth, int64_t index, uint64_t seed) const {
    // A generator of its own for each cell: cells do not depend on which others are made.
    PythonRandom random(
        (seed << 32) ^ static_cast<uint64_t>(length_ * 1'000'003 + depth * 7919 + index * 104'729));
    const std::string key = pairs_.at(random.below(pairs_.size()));
    const std::string value = std::to_string(random.randint(1'000'000, 9'999'999));
    int64_t low = 1;
    int64_t high = static_cast<int64_t>(sentences_.size());
    int64_t best = 0;
    while (low <= high) {
      const int64_t middle = (low + high) / 2;
      if (tokens(build(middle, depth, key, value)) + kReplyTokens <= length_) {
        best = middle;
        low = middle + 1;
      } else {
        high = middle - 1;
      }
    }
    if (best == 0) {
      return invalid_argument("needle_grid: no prompt fits in {} tokens; choose a larger length",
                              length_);
    }
    return build(best, depth, key, value);
  }

 private:
  Sample build(int64_t num_sentences, int64_t depth, const std::string& key,
               const std::string& value) const {
    const int64_t before = num_sentences * depth / 100;
    Sample sample;
    std::string& text = sample.prompt;
    text =
        "A special magic number is hidden within the following text. Make sure to memorize it. I "
        "will quiz you about the number afterwards.\n";
    for (int64_t i = 0; i <= num_sentences; ++i) {
      if (i == before) {
        text += fmt::format("{}One of the special magic numbers for {} is: {}.", i == 0 ? "" : " ",
                            key, value);
      }
      if (i < num_sentences) {
        text += i == 0 && before > 0 ? "" : " ";
        text += sentences_[static_cast<size_t>(i)];
      }
    }
    text += '\n';
    sample.question_begin = text.size();
    text +=
        fmt::format("What is the special magic number for {} mentioned in the provided text?", key);
    sample.answer_prefix =
        fmt::format(" The special magic number for {} mentioned in the provided text is", key);
    sample.references = {value};
    return sample;
  }

  int64_t tokens(const Sample& sample) const {
    return tokenizer_.count(format_ != nullptr
                                ? format_->render(sample.prompt, sample.answer_prefix)
                                : sample.prompt + sample.answer_prefix);
  }

  const RulerSources& sources_;
  const WordPairs& pairs_;
  const Tokenizer& tokenizer_;
  const PromptFormat* format_;
  int64_t length_ = 0;
  std::vector<std::string> sentences_;
};

}  // namespace

std::vector<std::string> NeedleGridBenchmark::tasks() const {
  std::vector<std::string> names;
  for (const int64_t depth : NeedleGridOptions().depths) {
    names.push_back(task_of(depth));
  }
  return names;
}

absl::StatusOr<Json> NeedleGridBenchmark::resolve_protocol(const Json& params) const {
  KVLAB_ASSIGN_OR_RETURN(const NeedleGridOptions options, parse_needle_grid_options(params));
  return Json{{"name", "needle_grid"},
              {"version", kVersion},
              {"chat_template", options.settings.chat_template},
              {"length_counted_with", options.settings.count_template ? "model" : "base"},
              {"answer_prefix", "begins the reply"},
              {"truncation", "none"},
              {"metric", "string_match"}};
}

absl::StatusOr<std::vector<Sample>> NeedleGridBenchmark::load_samples(
    const Json& params, const Tokenizer& tokenizer, const PromptFormat& format) const {
  KVLAB_ASSIGN_OR_RETURN(const NeedleGridOptions options, parse_needle_grid_options(params));
  const PromptSettings& settings = options.settings;
  RulerSourceLoader loader(settings.paths);
  KVLAB_ASSIGN_OR_RETURN(const RulerTask* words_task, find_ruler_task("niah_single_1"));
  KVLAB_ASSIGN_OR_RETURN(const LoadedSources words, loader.load(*words_task));
  KVLAB_ASSIGN_OR_RETURN(const LoadedSources text, loader.load_haystack());
  const std::string data_hash = sha256_hex(
      fmt::format("{}|{}|{}|{}|{}", kVersion, tokenizer.content_hash(),
                  settings.count_template ? format.template_hash : "base", words.hash, text.hash));
  GridMaker maker(text.sources, *words.sources.pairs, tokenizer,
                  settings.count_template ? &format : nullptr);
  std::vector<Sample> samples;
  for (const int64_t length : settings.lengths) {
    maker.set_length(length);
    for (const int64_t depth : options.depths) {
      for (int64_t index = 0; index < settings.samples; ++index) {
        KVLAB_ASSIGN_OR_RETURN(Sample sample, maker.make(depth, index, settings.seed));
        sample.benchmark = "needle_grid";
        sample.task = task_of(depth);
        sample.length = length;
        sample.index = index;
        sample.dataset =
            fmt::format("needle-grid-{}/{}@{}", kVersion, text.name, data_hash.substr(0, 12));
        sample.key = fmt::format("needle_grid/{}/{}/seed{}/{}/{}", sample.task, length,
                                 settings.seed, settings.count_template ? "model" : "base", index);
        sample.chat_template = settings.chat_template;
        sample.max_new_tokens = kReplyTokens;
        sample.extra["depth"] = depth;
        samples.push_back(std::move(sample));
      }
    }
  }
  return samples;
}

absl::StatusOr<Score> NeedleGridBenchmark::score(const Sample& sample,
                                                 std::string_view reply) const {
  return ruler_score(sample.references, /*any_reference=*/false, reply);
}

}  // namespace kvlab
