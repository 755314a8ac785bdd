#include "datasets/longbench/longbench_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include "datasets/longbench/zip_file.h"
#include "harness/base/files.h"
#include "harness/base/sha256.h"

namespace kvlab {
namespace {

using testing::HasSubstr;

constexpr char kRecord[] =
    R"({"_id":"a","context":"c","input":"i","answers":["x"],"length":5,"language":"en","all_classes":null})";

class LongBenchFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("longbench_files_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& text) { ASSERT_TRUE(write_file(folder_ / "trec.jsonl", text).ok()); }
  std::string error() {
    return std::string(read_longbench_records(folder_, "trec").status().message());
  }

  std::filesystem::path make_zip(const std::vector<std::pair<std::string, std::string>>& entries) {
    const std::filesystem::path path = folder_ / "data.zip";
    int code = 0;
    zip_t* const archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
    EXPECT_NE(archive, nullptr);
    for (const auto& [name, text] : entries) {
      zip_source_t* const source = zip_source_buffer(archive, text.data(), text.size(), 0);
      EXPECT_GE(zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8), 0);
    }
    EXPECT_EQ(zip_close(archive), 0);
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(LongBenchFiles, ReadsRecordsAndHashesTheFile) {
  const std::string text = std::string(kRecord) + "\n\n" + kRecord + "\n" +
                           R"({"context":"c","input":"","answers":["x"],"all_classes":["x","y"]})";
  put(text);
  const auto file = read_longbench_records(folder_, "trec");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->content_hash, sha256_hex(text));
  ASSERT_EQ(file->records.size(), 3U);
  EXPECT_EQ(file->records[0].id, "a");
  EXPECT_EQ(file->records[1].id, "a#3");  // stands twice
  EXPECT_EQ(file->records[2].id, "4");    // has none
  EXPECT_EQ(file->records[0].word_length, 5);
  EXPECT_THAT(file->records[2].classes, testing::ElementsAre("x", "y"));
}

TEST_F(LongBenchFiles, ErrorsNameFileAndLine) {
  EXPECT_THAT(error(), testing::AllOf(HasSubstr("trec.jsonl is missing"), HasSubstr("data.zip")));
  put(std::string(kRecord) + "\n{\"context\":1}");
  EXPECT_THAT(error(), testing::AllOf(HasSubstr("trec.jsonl, line 2"), HasSubstr("context")));
  put(R"({"context":"c","input":"i","answers":[]})");
  EXPECT_THAT(error(), HasSubstr("\"answers\" is missing or empty"));
  put(R"({"context":"c","input":"i","answers":[1]})");
  EXPECT_THAT(error(), HasSubstr("list of strings"));
  put("");
  EXPECT_THAT(error(), HasSubstr("no records"));
}

TEST_F(LongBenchFiles, ReadsThePublishedZip) {
  const auto path = make_zip({{"data/trec.jsonl", kRecord},
                              {"data/trec_e.jsonl", "{}"},
                              {"__MACOSX/data/trec.jsonl", "junk"}});
  const auto file = read_longbench_records(path, "trec");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->records.at(0).context, "c");
  EXPECT_EQ(file->content_hash, sha256_hex(kRecord));
  EXPECT_THAT(std::string(read_longbench_records(path, "qasper").status().message()),
              HasSubstr("qasper.jsonl is not in it"));
  EXPECT_THAT(std::string(read_longbench_records(path, "trec_e").status().message()),
              HasSubstr("trec_e.jsonl, line 1"));
}

TEST_F(LongBenchFiles, AmbiguousOversizedAndDamagedZipsAreErrors) {
  auto path = make_zip({{"a/trec.jsonl", kRecord}, {"b/trec.jsonl", kRecord}});
  EXPECT_THAT(std::string(read_longbench_records(path, "trec").status().message()),
              HasSubstr("more than once"));
  path = make_zip({{"trec.jsonl", std::string(100000, 'x')}});
  EXPECT_THAT(std::string(read_from_zip(path, "trec.jsonl", 99999).status().message()),
              HasSubstr("larger than 99999 bytes"));
  const std::string bytes = read_file(path).value();
  for (size_t cut = 0; cut < bytes.size(); cut += 7) {  // truncated anywhere
    ASSERT_TRUE(write_file(path, bytes.substr(0, cut)).ok());
    EXPECT_FALSE(read_from_zip(path, "trec.jsonl", 1 << 20).ok()) << cut;
  }
  for (size_t at = 0; at < bytes.size(); ++at) {  // one byte changed: an error, or the same text
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    ASSERT_TRUE(write_file(path, changed).ok());
    const auto text = read_from_zip(path, "trec.jsonl", 1 << 20);
    if (text.ok()) {
      EXPECT_EQ(*text, std::string(100000, 'x')) << at;
    }
  }
}

}  // namespace
}  // namespace kvlab
