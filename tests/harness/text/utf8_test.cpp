#include "harness/text/utf8.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace kvlab
