// One RULER prompt of a given size, and the makers of the five task families. Each maker draws
// from its generators in the order of NVIDIA's scripts, so that prompts equal theirs.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/ruler/tasks.h"
#include "datasets/haystack.h"
#include "datasets/punkt.h"
#include "datasets/question_sets.h"
#include "datasets/word_lists.h"

namespace kvlab {

struct RulerPrompt {
  std::string user_text;      // instruction, context and question
  std::string answer_prefix;  // the forced beginning of the reply
  std::vector<std::string> outputs;
};

class PromptMaker {
 public:
  virtual ~PromptMaker() = default;

  // Draws a prompt with `size` filler units (lines, words or documents) for sample `index`. An
  // error means that no such prompt exists; the draws made until then are spent.
  virtual absl::StatusOr<RulerPrompt> make(int64_t size, int64_t index) = 0;

  // What a sample has beyond make(): drawn only once the filler size is settled.
  virtual void finish(RulerPrompt& prompt) { (void)prompt; }

  // Text whose tokens the search for the filler size counts on top of make()'s.
  virtual std::string_view reserved_text() const { return {}; }
};

// What the tasks are made of; a task needs only its own sources.
struct RulerSources {
  std::shared_ptr<const WordLists> words;
  std::shared_ptr<const WordPairs> pairs;
  std::shared_ptr<const EnglishWords> english;  // optional: cwe beyond the word lists
  std::shared_ptr<const Haystack> haystack;
  std::shared_ptr<const PunktSplitter> punkt;  // null: simple_sentences
  std::shared_ptr<const QuestionSet> questions;
};

std::unique_ptr<PromptMaker> make_needle_maker(const RulerTask& task, const RulerSources& sources,
                                               uint64_t seed);
// `below_4096`: fewer repeats, as the original chooses for nominal lengths below 4,096 tokens.
std::unique_ptr<PromptMaker> make_common_words_maker(const RulerSources& sources, uint64_t seed,
                                                     bool below_4096);
std::unique_ptr<PromptMaker> make_question_maker(const RulerSources& sources, uint64_t seed);

// Variable tracking. Its worked example is a prompt of its own kind, made first with the same
// generators; after `use_example`, finish() puts it, names and value redrawn, before each prompt.
class VariableMaker : public PromptMaker {
 public:
  static std::unique_ptr<VariableMaker> create(uint64_t seed);
  virtual void use_example(const RulerPrompt& example) = 0;
};

// Frequent words. Sizes are words; a prompt of another size keeps its vocabulary until `redraw`.
class FrequentWordsMaker : public PromptMaker {
 public:
  static std::unique_ptr<FrequentWordsMaker> create(uint64_t seed, int64_t vocabulary);
  virtual void redraw() = 0;
};

}  // namespace kvlab
