// Prompts against the files of NVIDIA's own generator (Llama-3 tokenizer, template base).
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>

#include "benchmarks/ruler/file_source.h"
#include "benchmarks/ruler/generator.h"
#include "benchmarks/ruler/source_loader.h"
#include "harness/base/files.h"
#include "harness/base/status.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

// Shows where two long texts part, instead of printing both.
testing::AssertionResult same_bytes(std::string_view ours, std::string_view theirs) {
  if (ours == theirs) {
    return testing::AssertionSuccess();
  }
  const auto [a, b] = std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  const auto at = static_cast<size_t>(a - ours.begin());
  const size_t from = at < 60 ? 0 : at - 60;
  return testing::AssertionFailure()
         << "sizes " << ours.size() << " and " << theirs.size() << ", first difference at byte "
         << at << ":\n  ours   ..." << ours.substr(from, 120) << "\n  theirs ..."
         << theirs.substr(from, 120);
}

RulerSourcePaths shared_paths(const std::filesystem::path& shared) {
  return {.essays = shared / "paul_graham_essays",
          .squad = shared / "squad",
          .hotpotqa = shared / "hotpotqa",
          .wordlists = shared / "wordlists",
          .punkt = shared / "nltk_punkt"};
}

TEST(RulerOfficial, EveryTaskEqualsNvidiasFilesByteForByte) {
  KVLAB_SHARED_DATA_OR_SKIP(shared);
  const auto tokenizer = Tokenizer::load(shared / "model_configs" / "Llama-3.1-8B-Instruct");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  RulerSourceLoader loader(shared_paths(shared));
  int compared = 0;
  // Every length that is there: more official files can be put beside those of 4,096 tokens.
  for (const auto& folder : std::filesystem::directory_iterator(shared / "ruler_official")) {
    int64_t length = 0;
    const std::string name = folder.path().filename().string();
    std::from_chars(name.data(), name.data() + name.size(), length);
    for (const RulerTask& task : ruler_tasks()) {
      const auto path = folder.path() / (std::string(task.name) + ".jsonl");
      if (!std::filesystem::exists(path)) {
        continue;
      }
      SCOPED_TRACE(path.string());
      const auto official = read_file(path);
      ASSERT_TRUE(official.ok()) << official.status();
      const auto loaded = loader.load(task);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      RulerRequest request;
      request.task = &task;
      request.length = length;
      request.samples = std::count(official->begin(), official->end(), '\n');
      const auto items = generate_ruler(request, loaded->sources, **tokenizer);
      ASSERT_TRUE(items.ok()) << items.status();
      EXPECT_TRUE(same_bytes(ruler_json_lines(*items), *official));
      ++compared;
    }
  }
  EXPECT_GE(compared, 13);
}

TEST(RulerOfficial, OfficialFilesReadBackGiveTheGeneratedPrompts) {
  KVLAB_SHARED_DATA_OR_SKIP(shared);
  const auto files = find_ruler_files(shared / "ruler_official", {"vt", "qa_1", "cwe"}, true);
  ASSERT_TRUE(files.ok()) << files.status();
  for (const RulerFile& file : *files) {
    EXPECT_GT(file.length, 0);
    const auto contents = read_ruler_file(file.path);
    ASSERT_TRUE(contents.ok()) << contents.status();
    EXPECT_EQ(contents->content_hash.size(), 64u);
    EXPECT_TRUE(contents->has_answer_prefix);
    for (const RulerItem& item : contents->items) {
      EXPECT_FALSE(item.answer_prefix.empty());
      EXPECT_LT(ruler_question_begin(*file.task, item.user_text), item.user_text.size());
    }
  }
}

}  // namespace
}  // namespace kvlab
