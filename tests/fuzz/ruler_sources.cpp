// The readers of RULER's sources and files on arbitrary bytes: an error or sane contents, no crash.
// The first byte chooses the reader.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "benchmarks/ruler/file_source.h"
#include "benchmarks/ruler/scorer.h"
#include "datasets/haystack.h"
#include "datasets/punkt.h"
#include "datasets/question_sets.h"
#include "datasets/sentences.h"
#include "datasets/word_lists.h"
#include "harness/base/check.h"
#include "harness/base/files.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

const std::filesystem::path& folder() {
  static const std::filesystem::path dir = [] {
    auto path =
        std::filesystem::temp_directory_path() / ("kvlab_fuzz_ruler_" + std::to_string(getpid()));
    std::filesystem::create_directories(path);
    return path;
  }();
  return dir;
}

std::filesystem::path file(const char* name, std::string_view contents) {
  KVLAB_CHECK(write_file(folder() / name, contents).ok());
  return folder() / name;
}

void check_questions(const absl::StatusOr<QuestionSet>& set) {
  if (!set.ok()) {
    return;
  }
  KVLAB_CHECK(!set->questions.empty());
  for (const Question& question : set->questions) {
    for (const uint32_t document : question.documents) {
      KVLAB_CHECK(document < set->documents.size());
    }
    for (const uint32_t document : question.more_documents) {
      KVLAB_CHECK(document < set->documents.size());
    }
  }
}

// Parameters and text stand one after the other, with zero bytes between.
void check_punkt(std::string_view input) {
  size_t begin = 0;
  for (const char* name :
       {"abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt"}) {
    const size_t end = std::min(input.find('\0', begin), input.size());
    file(name, input.substr(begin, end - begin));
    begin = std::min(end + 1, input.size());
  }
  const std::string text = to_valid_utf8(input.substr(begin));
  const auto splitter = PunktSplitter::load(folder());
  if (!splitter.ok()) {
    return;
  }
  size_t bytes = 0;
  for (const std::string& sentence : splitter->sentences(text)) {
    KVLAB_CHECK(!sentence.empty());
    KVLAB_CHECK(text.find(sentence) != text.npos);
    bytes += sentence.size();
  }
  KVLAB_CHECK(bytes <= text.size());
}

void run(std::string_view input) {
  if (input.empty()) {
    return;
  }
  const char choice = input[0];
  input.remove_prefix(1);
  switch (choice) {
    case 's':
      check_questions(QuestionSet::load_squad(file("squad.json", input)));
      break;
    case 'h':
      check_questions(QuestionSet::load_hotpotqa(file("hotpotqa.json", input)));
      break;
    case 'f': {
      std::string hash;
      const auto contents = read_ruler_file(file("vt.jsonl", input));
      for (size_t i = 0; contents.ok() && i < contents->items.size(); ++i) {
        const RulerItem& item = contents->items[i];
        KVLAB_CHECK(!item.outputs.empty());
        for (const RulerTask& task : ruler_tasks()) {
          KVLAB_CHECK(ruler_question_begin(task, item.user_text) <= item.user_text.size());
        }
        KVLAB_CHECK(ruler_score(item.outputs, true, item.outputs[0]).value >= 0);
      }
      break;
    }
    case 'w': {
      file("english_words.json", input);
      (void)EnglishWords::load(folder());
      break;
    }
    case 'e': {
      const auto haystack = Haystack::load_text(file("essay.txt", input), "fuzz");
      KVLAB_CHECK(!haystack.ok() || !haystack->words.empty());
      (void)simple_sentences(to_valid_utf8(input));
      break;
    }
    default:
      check_punkt(input);
  }
}

}  // namespace
}  // namespace kvlab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvlab::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
