#include <fmt/format.h>

#include <algorithm>

#include "benchmarks/ruler/prompt_maker.h"
#include "datasets/python_random.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

class QuestionMaker final : public PromptMaker {
 public:
  QuestionMaker(const RulerSources& sources, uint64_t seed)
      : set_(sources.questions), seed_(seed), random_(seed) {}

  absl::StatusOr<RulerPrompt> make(int64_t size, int64_t index) override {
    if (static_cast<size_t>(index) >= set_->questions.size()) {
      return invalid_argument("{} has {} questions; sample {} needs one more", set_->name,
                              set_->questions.size(), index);
    }
    const Question& question = set_->questions[static_cast<size_t>(index)];
    KVLAB_ASSIGN_OR_RETURN(std::vector<uint32_t> chosen,
                           choose(question, static_cast<size_t>(size)));
    shuffle_with_seed(seed_, chosen);
    std::string context;
    for (size_t i = 0; i < chosen.size(); ++i) {
      fmt::format_to(std::back_inserter(context), "{}Document {}:\n{}", i == 0 ? "" : "\n\n", i + 1,
                     set_->documents[chosen[i]]);
    }
    constexpr std::string_view kInstruction =
        "Answer the question based on the given documents. Only give me the answer and do not "
        "output any other words.";
    RulerPrompt prompt;
    prompt.user_text =
        fmt::format("{}\n\nThe following are given documents.\n\n{}\n\n{}\n\nQuestion: {}",
                    kInstruction, context, kInstruction, question.text);
    prompt.answer_prefix = " Answer:";
    prompt.outputs = question.answers;
    return prompt;
  }

 private:
  absl::StatusOr<std::vector<uint32_t>> choose(const Question& question, size_t count) {
    const size_t num_documents = set_->documents.size();
    std::vector<uint32_t> chosen;
    if (count >= num_documents) {
      for (size_t i = 0; i < count; ++i) {
        chosen.push_back(static_cast<uint32_t>(i % num_documents));
      }
      return chosen;
    }
    const std::vector<uint32_t>& own = question.documents;
    const std::vector<uint32_t>& more = question.more_documents;
    if (count < own.size()) {
      return invalid_argument("the question comes with {} documents, more than {}", own.size(),
                              count);
    }
    chosen = own;
    size_t missing = count - own.size();
    if (missing <= more.size()) {
      for (const size_t i : random_.sample(more.size(), missing)) {
        chosen.push_back(more[i]);
      }
      return chosen;
    }
    chosen.insert(chosen.end(), more.begin(), more.end());
    std::vector<bool> taken(num_documents, false);
    for (const uint32_t document : chosen) {
      taken[document] = true;
    }
    std::vector<uint32_t> others;
    for (uint32_t document = 0; document < num_documents; ++document) {
      if (!taken[document]) {
        others.push_back(document);
      }
    }
    missing -= more.size();
    if (missing > others.size()) {
      return invalid_argument("{} further documents are needed and {} are left", missing,
                              others.size());
    }
    for (const size_t i : random_.sample(others.size(), missing)) {
      chosen.push_back(others[i]);
    }
    return chosen;
  }

  std::shared_ptr<const QuestionSet> set_;
  uint64_t seed_;
  PythonRandom random_;
};

}  // namespace

std::unique_ptr<PromptMaker> make_question_maker(const RulerSources& sources, uint64_t seed) {
  return std::make_unique<QuestionMaker>(sources, seed);
}

}  // namespace kvlab
