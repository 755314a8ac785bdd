#include "harness/text/utf8.h"

#include <gmock/gmock.h>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "harness/text/text_file.h"

namespace kvlab {
namespace {

TEST(Utf8, ValidTextGoesThroughUnchanged) {
  const std::string text = "a\u00e9\u20ac\U0001F600\n";
  EXPECT_TRUE(is_valid_utf8(text));
  EXPECT_EQ(to_valid_utf8(text), text);
  EXPECT_EQ(to_utf8(to_code_points(text)), text);
  EXPECT_EQ(to_code_points(text).size(), 5U);
}

// Expected strings: Python 3.11, bytes.decode(errors="replace").
TEST(Utf8, InvalidPartsBecomeReplacementCharactersAsInPython) {
  const std::string r = "\uFFFD";
  EXPECT_EQ(to_valid_utf8("a\xFFz"), "a" + r + "z");
  EXPECT_EQ(to_valid_utf8("\xE2\x82z"), r + "z");
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(to_valid_utf8("\xF0\x9F\x98"), r);
  EXPECT_EQ(to_valid_utf8("\xC0\xAF"), r + r);
  EXPECT_EQ(to_valid_utf8("\xF4\x90\x80\x80"), r + r + r + r);
}

TEST(Utf8, AFileThatIsNotUtf8IsRefusedWithItsFirstWrongByte) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "kvlab_utf8.txt";
  ASSERT_TRUE(write_file(path, "\u00e9 \uFFFD good").ok());
  EXPECT_EQ(read_utf8_file(path).value(), "\u00e9 \uFFFD good");
  ASSERT_TRUE(write_file(path, "\u00e9 \uFFFD bad \xE2\x82").ok());
  EXPECT_THAT(message_of(read_utf8_file(path).status()),
              ::testing::HasSubstr(path.string() + ": not UTF-8 from byte 11 on"));
}

}  // namespace
}  // namespace kvlab
