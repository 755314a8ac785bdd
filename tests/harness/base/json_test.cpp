#include "harness/base/json.h"

#include <gmock/gmock.h>

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Json, DuplicateKeysAreRefusedAtAnyDepth) {
  const auto parsed = parse_json(R"({"a": {"b": 1, "b": 2}})", "sweep.json");
  EXPECT_THAT(message_of(parsed.status()), AllOf(HasSubstr("sweep.json"), HasSubstr("\"b\"")));
  EXPECT_TRUE(parse_json(R"([{"b": 1}, {"b": 2}])", "x").ok());
}

TEST(Json, SyntaxErrorsNameTheOrigin) {
  EXPECT_THAT(message_of(parse_json("{", "sweep.json").status()), HasSubstr("sweep.json"));
}

TEST(Json, ZeroBytesAreNotTheEnd) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view text : {"{}\0"sv, "{}\0{"sv, "\0"sv, "[1,\0 2]"sv}) {
    EXPECT_THAT(message_of(parse_json(text, "x").status()), HasSubstr("zero byte"));
  }
}

TEST(Json, TypedAccessNamesMissingAndMistypedKeys) {
  const Json object = parse_json(R"({"n": 3, "s": "x", "z": null})", "o").value();
  EXPECT_EQ(json_get<int64_t>(object, "n", "o").value(), 3);
  EXPECT_THAT(message_of(json_get<int64_t>(object, "m", "o").status()), HasSubstr("\"m\""));
  EXPECT_THAT(message_of(json_get<int64_t>(object, "s", "o").status()),
              AllOf(HasSubstr("\"s\""), HasSubstr("an integer")));
  EXPECT_EQ(json_get_or<double>(object, "z", 2.5, "o").value(), 2.5);
  EXPECT_FALSE(json_get_or<double>(object, "s", 2.5, "o").ok());
}

TEST(Json, InvalidUtf8IsReplacedWhenWritten) {
  EXPECT_EQ(dump_json(Json("a\xFF")), "\"a\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace kvlab
