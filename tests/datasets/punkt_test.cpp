#include "datasets/punkt.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

Json golden() {
  auto json = read_json_file(std::string(KVLAB_TEST_DIR) + "/golden/ruler/punkt.json");
  EXPECT_TRUE(json.ok()) << json.status();
  return *json;
}

TEST(Punkt, SentencesOfTheSamplesEqualNltks) {
  KVLAB_SHARED_DATA_OR_SKIP(shared);
  const auto splitter = PunktSplitter::load(shared / "nltk_punkt");
  ASSERT_TRUE(splitter.ok()) << splitter.status();
  const Json all = golden();
  ASSERT_FALSE(all["samples"].empty());
  for (const Json& sample : all["samples"]) {
    const auto text = sample["text"].get<std::string>();
    EXPECT_EQ(splitter->sentences(text), sample["sentences"].get<std::vector<std::string>>())
        << text;
  }
}

TEST(Punkt, SentencesOfEssaysAndLongBenchTextsEqualNltks) {
  KVLAB_SHARED_DATA_OR_SKIP(shared);
  const auto splitter = PunktSplitter::load(shared / "nltk_punkt" / "english");
  ASSERT_TRUE(splitter.ok()) << splitter.status();
  const Json all = golden();
  ASSERT_FALSE(all["files"].empty());
  for (const Json& entry : all["files"]) {
    const auto path = shared / entry["file"].get<std::string>();
    SCOPED_TRACE(path.string());
    std::string text;
    if (path.extension() == ".jsonl") {
      const auto lines = read_json_lines(path);
      ASSERT_TRUE(lines.ok()) << lines.status();
      for (const Json& line : *lines) {
        text += (text.empty() ? "" : "\n") + line.at("context").get<std::string>();
      }
    } else {
      const auto contents = read_file(path);
      ASSERT_TRUE(contents.ok()) << contents.status();
      text = *contents;
    }
    const std::vector<std::string> sentences = splitter->sentences(text);
    EXPECT_EQ(sentences.size(), entry["count"].get<size_t>());
    EXPECT_EQ(sha256_hex(fmt::format("{}", fmt::join(sentences, "\x1f"))),
              entry["sha256"].get<std::string>());
  }
}

TEST(Punkt, AMissingOrBrokenFolderIsAnErrorThatNamesTheFile) {
  const std::filesystem::path dir = std::filesystem::path(testing::TempDir()) / "punkt";
  std::filesystem::remove_all(dir);
  const auto missing = PunktSplitter::load(dir);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(message_of(missing.status()).find("abbrev_types.txt"), std::string::npos);

  std::filesystem::create_directories(dir);
  std::ofstream(dir / "abbrev_types.txt") << "dr\n";
  std::ofstream(dir / "collocations.tab") << "a\tb\n";
  std::ofstream(dir / "sent_starters.txt") << "the\n";
  std::ofstream(dir / "ortho_context.tab") << "word\tmany\n";
  const auto broken = PunktSplitter::load(dir);
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(message_of(broken.status()).find("ortho_context.tab"), std::string::npos);
}

}  // namespace
}  // namespace kvlab
