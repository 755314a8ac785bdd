#include "datasets/training/prompt_kinds.h"

#include "datasets/training/lookup_kinds.h"
#include "datasets/training/text_kinds.h"

namespace kvlab {

const std::vector<PromptKind>& prompt_kinds() {
  static const auto* const kinds = new std::vector<PromptKind>{
      {"facts", "sentences planted in a text, asked for one or several at a time",
       make_facts_prompt},
      {"several", "the same, always three or more of them", make_several_prompt},
      {"identifiers", "one such sentence among others, its value a long identifier",
       make_identifiers_prompt},
      {"examples", "passages with one such sentence, its question and answer; the last one open",
       make_examples_prompt},
      {"records", "one line of a long list of alike lines", make_records_prompt},
      {"aliases", "names that share a value through assignments", make_aliases_prompt},
      {"counts", "the words that occur most in a list", make_counts_prompt},
      {"passages", "numbered passages and a question about one", make_passages_prompt},
      {"questions", "a document or several, and what they say about a few of their words",
       make_questions_prompt},
      {"completion", "a sentence of the text to find and complete", make_completion_prompt},
      {"summary", "a summary of a document", make_summary_prompt},
      {"continuation", "code or prose, cut at a random point", make_continuation_prompt},
      {"few_shot", "solved examples and one open question", make_few_shot_prompt},
  };
  return *kinds;
}

}  // namespace kvlab
