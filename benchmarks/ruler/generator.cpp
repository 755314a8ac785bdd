#include "benchmarks/ruler/generator.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/check.h"
#include "harness/base/status.h"
#include "harness/text/python_utf8.h"

namespace kvlab {
namespace {

// Tries at the smallest filler size before a length counts as impossible. Each try draws anew, so
// that a later one can be shorter.
constexpr int kTriesAtMinimum = 64;

// Settings of the search for the filler size.
struct Fit {
  int64_t length = 0;         // tokens that may not be passed, reply allowance included
  int64_t reserve = 0;        // reply allowance
  int64_t step = 0;           // smallest size, and what an overflowing sample is shortened by
  bool common_words = false;  // cwe estimates the upper bound in its own way
};

class Generator {
 public:
  Generator(const RulerRequest& request, const RulerSources& sources, const Tokenizer& tokenizer)
      : request_(request), sources_(sources), tokenizer_(tokenizer) {}

  absl::StatusOr<std::vector<RulerItem>> run() {
    switch (request_.task->family) {
      case RulerFamily::kNeedles: {
        const bool essay = request_.task->filler == NeedleFiller::kEssay;
        const int64_t step = essay ? 500 : request_.length < 4096 ? 5 : 25;
        const auto maker = make_needle_maker(*request_.task, sources_, request_.seed);
        return run_fitted(*maker, {request_.length, allowance(), step});
      }
      case RulerFamily::kVariables: {
        const auto maker = VariableMaker::create(request_.seed);
        KVLAB_ASSIGN_OR_RETURN(const RulerPrompt example, variable_example(*maker));
        maker->use_example(example);
        return run_fitted(*maker, {request_.length, allowance(), request_.length < 4096 ? 5 : 10});
      }
      case RulerFamily::kCommonWords: {
        const auto maker = make_common_words_maker(sources_, request_.seed, request_.length < 4096);
        return run_fitted(*maker, {request_.length, allowance(), 10, true});
      }
      case RulerFamily::kQuestions: {
        const auto maker = make_question_maker(sources_, request_.seed);
        return run_fitted(*maker, {request_.length, allowance(), 10});
      }
      case RulerFamily::kFrequentWords:
        return run_frequent_words();
    }
    return std::vector<RulerItem>();
  }

 private:
  int64_t allowance() const { return request_.task->tokens_to_generate; }

  std::string input_of(const RulerPrompt& prompt) const {
    return request_.prompt_format ? request_.prompt_format->render(prompt.user_text, "")
                                  : prompt.user_text;
  }
  // The worked example of variable tracking is sized without the template.
  int64_t count(const RulerPrompt& prompt) const {
    return tokenizer_.count((sizing_example_ ? prompt.user_text : input_of(prompt)) +
                            prompt.answer_prefix);
  }

  // The largest size whose first prompt fits, by binary search; `step` where none does.
  absl::StatusOr<int64_t> search_size(PromptMaker& maker, const Fit& fit) const {
    const int64_t probe_size = fit.common_words ? 4096 : fit.step;
    KVLAB_ASSIGN_OR_RETURN(const RulerPrompt probe, maker.make(probe_size, 0));
    const int64_t probe_tokens = count(probe);
    // The original's floating-point steps, whose rounding decides the bounds.
    const double per_unit = static_cast<double>(probe_tokens) / static_cast<double>(probe_size);
    const int64_t estimate =
        fit.common_words ? (fit.length * probe_size / probe_tokens) * 2
                         : static_cast<int64_t>((static_cast<double>(fit.length) / per_unit) * 3);
    const int64_t reserved = maker.reserved_text().empty()
                                 ? fit.reserve
                                 : fit.reserve + tokenizer_.count(maker.reserved_text());
    int64_t low = fit.step;
    int64_t high = std::max(estimate, fit.step * 2);
    int64_t best = fit.step;
    while (low <= high) {
      const int64_t middle = (low + high) / 2;
      KVLAB_ASSIGN_OR_RETURN(const RulerPrompt prompt, maker.make(middle, 0));
      if (count(prompt) + reserved <= fit.length) {
        best = middle;
        low = middle + 1;
      } else {
        high = middle - 1;
      }
    }
    return best;
  }

  struct Fitted {
    RulerPrompt prompt;
    int64_t tokens = 0;  // allowance included
  };

  // A prompt of `size` units, shortened by steps until it fits.
  absl::StatusOr<Fitted> fit_sample(PromptMaker& maker, const Fit& fit, int64_t size,
                                    int64_t index) const {
    int64_t shortest = 0;
    absl::Status last_error;
    for (int tries = 0; tries < kTriesAtMinimum;) {
      absl::StatusOr<RulerPrompt> prompt = maker.make(size, index);
      if (prompt.ok()) {
        maker.finish(*prompt);
        const int64_t tokens = count(*prompt) + fit.reserve;
        if (tokens <= fit.length) {
          return Fitted{*std::move(prompt), tokens};
        }
        shortest = shortest == 0 ? tokens : std::min(shortest, tokens);
      } else {
        last_error = prompt.status();
      }
      if (size > fit.step) {
        size -= fit.step;
      } else {
        ++tries;
      }
    }
    if (shortest == 0) {
      return with_context(last_error, fmt::format("{}: sample {} at length {}", request_.task->name,
                                                  index, fit.length));
    }
    return invalid_argument(
        "{}: sample {} does not fit in {} tokens: its shortest prompt has {} with the {} for the "
        "reply; choose a larger length",
        request_.task->name, index, fit.length, shortest, fit.reserve);
  }

  absl::StatusOr<RulerPrompt> variable_example(VariableMaker& maker) {
    sizing_example_ = true;
    const Fit fit = {500, 0, 5};
    KVLAB_ASSIGN_OR_RETURN(const int64_t size, search_size(maker, fit));
    KVLAB_ASSIGN_OR_RETURN(Fitted example, fit_sample(maker, fit, size, 0));
    sizing_example_ = false;
    return std::move(example.prompt);
  }

  absl::StatusOr<std::vector<RulerItem>> run_fitted(PromptMaker& maker, const Fit& fit) const {
    KVLAB_ASSIGN_OR_RETURN(const int64_t size, search_size(maker, fit));
    std::vector<RulerItem> items;
    for (int64_t index = 0; index < request_.samples; ++index) {
      KVLAB_ASSIGN_OR_RETURN(Fitted sample, fit_sample(maker, fit, size, index));
      items.push_back(item_of(std::move(sample.prompt), sample.tokens, index));
    }
    return items;
  }

  // Frequent words grow from a sixth of the limit in words by a 32nd of it until the prompt is too
  // long; every sample has a vocabulary of its own.
  absl::StatusOr<std::vector<RulerItem>> run_frequent_words() const {
    const int64_t limit = request_.length - allowance();
    const int64_t step = limit / 32;
    const int64_t vocabulary = limit / 50;
    if (vocabulary < 4) {  // the noise and the three words asked for
      return too_short_for_frequent_words();
    }
    const auto maker = FrequentWordsMaker::create(request_.seed, vocabulary);
    maker->redraw();
    int64_t size = limit / 6;
    while (true) {
      KVLAB_ASSIGN_OR_RETURN(const RulerPrompt prompt, maker->make(size, 0));
      if (count(prompt) >= limit) {
        break;
      }
      size += step;
    }
    size -= step;
    std::vector<RulerItem> items;
    for (int64_t index = 0; index < request_.samples; ++index) {
      maker->redraw();
      int64_t words = size;
      while (true) {
        KVLAB_ASSIGN_OR_RETURN(RulerPrompt prompt, maker->make(words, index));
        const int64_t tokens = count(prompt);
        if (tokens <= limit) {
          items.push_back(item_of(std::move(prompt), tokens + allowance(), index));
          break;
        }
        words -= step;
        if (words <= 0) {
          return too_short_for_frequent_words();
        }
      }
    }
    return items;
  }

  absl::Status too_short_for_frequent_words() const {
    return invalid_argument("fwe: no prompt fits in {} tokens; choose a larger length",
                            request_.length);
  }

  RulerItem item_of(RulerPrompt prompt, int64_t tokens, int64_t index) const {
    RulerItem item;
    item.index = index;
    item.input = input_of(prompt);
    item.user_text = std::move(prompt.user_text);
    item.answer_prefix = std::move(prompt.answer_prefix);
    item.outputs = std::move(prompt.outputs);
    item.length = tokens;
    if (request_.task->family == RulerFamily::kNeedles) {
      const size_t at = item.input.find(item.outputs[0]);
      KVLAB_CHECK(at != item.input.npos);
      const std::string_view before = std::string_view(item.input).substr(0, at);
      item.index = static_cast<int64_t>(python_length(before));
      item.token_position_answer = tokenizer_.count(before);
    }
    return item;
  }

  const RulerRequest& request_;
  const RulerSources& sources_;
  const Tokenizer& tokenizer_;
  bool sizing_example_ = false;
};

}  // namespace

absl::StatusOr<std::vector<RulerItem>> generate_ruler(const RulerRequest& request,
                                                      const RulerSources& sources,
                                                      const Tokenizer& tokenizer) {
  return Generator(request, sources, tokenizer).run();
}

std::string ruler_json_lines(const std::vector<RulerItem>& items) {
  std::string out;
  for (const RulerItem& item : items) {
    std::string outputs;
    for (const std::string& output : item.outputs) {
      outputs += (outputs.empty() ? "" : ", ") + python_json_string(output);
    }
    fmt::format_to(std::back_inserter(out),
                   "{{\"index\": {}, \"input\": {}, \"outputs\": [{}], \"length\": {}, "
                   "\"length_w_model_temp\": {}, \"answer_prefix\": {}",
                   item.index, python_json_string(item.input), outputs, item.length, item.length,
                   python_json_string(item.answer_prefix));
    if (item.token_position_answer) {
      fmt::format_to(std::back_inserter(out), ", \"token_position_answer\": {}",
                     *item.token_position_answer);
    }
    out += "}\n";
  }
  return out;
}

}  // namespace kvlab
