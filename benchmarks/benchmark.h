// What the sweep sees of a benchmark: samples to run and a score for a reply.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"
#include "harness/text/prompt_builder.h"
#include "harness/text/prompt_format.h"
#include "harness/text/tokenizer.h"

namespace kvlab {

// One prompt with everything needed to run and score it. Self-contained: scoring a stored reply
// needs the sample only.
struct Sample {
  std::string key;        // unique and stable: "ruler/vt/4096/seed42/base/3"
  std::string benchmark;  // "ruler"
  std::string dataset;    // what the texts are, with version: never equal for unequal data
  std::string task;       // "vt"
  int64_t length = 0;     // nominal prompt length in tokens; 0 where the benchmark has none
  int64_t index = 0;      // order within the task

  std::string prompt;         // the user's turn, before any template or truncation
  size_t question_begin = 0;  // byte offset in `prompt` where the question starts; equal to
                              // prompt.size() when the prompt has no separate question
  std::string answer_prefix;  // forced beginning of the reply, after the assistant header
  bool chat_template = true;  // false: the prompt goes in raw
  std::vector<std::string> references;
  Json extra = Json::object();  // further fields a scorer or report needs (classes, depth, ...)

  int64_t max_new_tokens = 0;
  int64_t min_new_tokens = 0;
  std::vector<std::string> stop_texts;  // e.g. "\n": each a single token that also ends the reply
  Truncation truncation = Truncation::kNone;
  int64_t max_prompt_tokens = 0;  // limit for truncation; 0: none
  BosRule bos_rule = BosRule::kOne;
  bool tokenise_in_parts = false;  // what the model is shown first apart from the rest (kvpress)
  bool clean_up_spaces = false;    // transformers' clean-up of decoded text, when truncating
};

// Whether the prompt has a question that can be kept apart.
inline bool has_question(const Sample& sample) {
  return sample.question_begin < sample.prompt.size();
}

// The sample's prompt, for build_prompt(). `split_question`: keep the question apart, for methods
// that must not see it. The request points into `sample`.
inline PromptRequest prompt_request(const Sample& sample, bool split_question) {
  return {.user_text = sample.prompt,
          .question_begin = sample.question_begin,
          .answer_prefix = sample.answer_prefix,
          .chat_template = sample.chat_template,
          .truncation = sample.truncation,
          .max_prompt_tokens = sample.max_prompt_tokens,
          .bos_rule = sample.bos_rule,
          .in_parts = sample.tokenise_in_parts,
          .split_question = split_question,
          .clean_up_spaces = sample.clean_up_spaces};
}

// A value in 0..100, and the metric's name as tables show it.
struct Score {
  double value = 0;
  std::string metric;
};

class Benchmark {
 public:
  virtual ~Benchmark() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;  // one line for `kvlab list benchmarks`
  virtual std::vector<std::string> tasks() const = 0;

  // Named, stored settings that move scores (docs/protocols.md, docs/longbench.md), after defaults
  // are resolved: the same Json means comparable rows. `params` is the benchmark's object in the
  // sweep file.
  virtual absl::StatusOr<Json> resolve_protocol(const Json& params) const = 0;

  // Samples for `params` (keys are the benchmark's own: tasks, lengths, samples, seed, file, ...).
  // `format` is the model's template, where lengths are counted with it. Errors name the key and
  // the valid choices.
  virtual absl::StatusOr<std::vector<Sample>> load_samples(const Json& params,
                                                           const Tokenizer& tokenizer,
                                                           const PromptFormat& format) const = 0;

  virtual absl::StatusOr<Score> score(const Sample& sample, std::string_view reply) const = 0;
};

}  // namespace kvlab
