// Every format against a reviewed file below tests/reports/golden, with plain and with hostile
// text. After a wanted change: KVLAB_WRITE_GOLDEN=1 writers_test, and read the difference.
#include "reports/writers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "tests/reports/hostile.h"
#include "tests/reports/latex.h"

namespace kvlab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TableCell cell(const std::string& text, double value, double low, double high, int64_t count,
               bool best = false) {
  return {.text = text,
          .value = value,
          .low = low,
          .high = high,
          .count = count,
          .expected = 20,
          .best = best};
}

Table plain_table() {
  Table table;
  table.title = "ruler, SmolLM2-135M-Instruct, 4096 tokens";
  table.attributes = {
      {"benchmark", "ruler"}, {"model", "SmolLM2-135M-Instruct"}, {"length", "4096"}};
  table.caption = "Score 0 to 100: mean ± half of its 95 % interval";
  table.row_headers = {"method", "budget"};
  table.columns = {{"vt", "n=20", "string_match_all"}, {"qa_1", "n=20", "string_match_part"}};
  table.rows = {
      {{"full", "full"},
       {cell("91.0 ± 4.1", 91, 86.9, 95.1, 20), cell("55.0 ± 9.9", 55, 45.1, 64.9, 20)},
       0},
      {{"snapkv", "128"},
       {cell("40.0 ± 8.0", 40, 32, 48, 20), cell("35.0 ± 9.0", 35, 26, 44, 20, true)},
       1},
      {{"laq", "128"},
       {cell("61.0 ± 8.5", 61, 52.5, 69.5, 20, true), cell("30.0 ± 9.0 (19/20)", 30, 21, 39, 19)},
       1},
      {{"h2o", "128"}, {{.text = "–", .expected = 20}, {.text = "–", .expected = 20}}, 1},
  };
  table.notes = {"(k/n): only k of the n samples that other rows have.",
                 "failed: 20 cells of h2o: out of memory"};
  return table;
}

// The hostile text wherever a sweep or a model could put text of its own.
Table hostile_table() {
  Table table = plain_table();
  table.title = std::string(kHostile);
  table.attributes = {{"model", std::string(kHostile)}, {"dataset", "=1+1"}};
  table.caption = std::string(kHostile);
  table.columns[0].name = std::string(kHostile);
  table.columns[1].detail = std::string(kHostile);
  table.columns[1].metric = "@SUM(A1)";
  table.rows[1].headers = {std::string(kHostile), "+128"};
  table.rows[2].headers = {"-laq", "\t=cmd|' /C calc'!A0"};
  table.rows[3].headers = {"[4pt]", "*"};
  table.rows[3].cells[1].text = std::string(kHostile);
  table.notes = {std::string(kHostile)};
  return table;
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(KVLAB_TEST_DIR) + "/reports/golden/" + name;
  if (std::getenv("KVLAB_WRITE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file(path, text).ok());
  }
  const auto expected = read_file(path);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(text, *expected);
}

struct FormatCase {
  const char* name;
  const char* suffix;
  TableFormat format;
};
class EveryFormat : public ::testing::TestWithParam<FormatCase> {};
INSTANTIATE_TEST_SUITE_P(Writers, EveryFormat,
                         ::testing::Values(FormatCase{"text", "txt", TableFormat::kText},
                                           FormatCase{"markdown", "md", TableFormat::kMarkdown},
                                           FormatCase{"csv", "csv", TableFormat::kCsv},
                                           FormatCase{"latex", "tex", TableFormat::kLatex},
                                           FormatCase{"html", "html", TableFormat::kHtml}),
                         [](const auto& each) { return each.param.name; });

TEST_P(EveryFormat, EqualsItsGoldenFile) {
  const std::vector<Table> tables = {plain_table(), plain_table()};
  expect_golden(std::string("plain.") + GetParam().suffix, write_tables(tables, GetParam().format));
}

TEST_P(EveryFormat, WithHostileTextEqualsItsGoldenFile) {
  const std::vector<Table> tables = {hostile_table()};
  expect_golden(std::string("hostile.") + GetParam().suffix,
                write_tables(tables, GetParam().format));
}

TEST_P(EveryFormat, NeverLetsControlCharactersThrough) {
  const std::vector<Table> tables = {hostile_table()};
  const std::string text = write_tables(tables, GetParam().format);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool csv_line_end = GetParam().format == TableFormat::kCsv && c == '\r';
    EXPECT_TRUE(byte >= 0x20 || c == '\n' || csv_line_end) << static_cast<int>(byte);
    EXPECT_NE(byte, 0x7f);
  }
  EXPECT_THAT(text, Not(HasSubstr("\u202e")));  // right-to-left override
  EXPECT_THAT(text, Not(HasSubstr("\u009b")));  // a terminal sequence in one character
}

TEST(Writers, TerminalsGetBoldInsteadOfStars) {
  const std::string text = write_text(plain_table(), {.ansi_bold = true});
  EXPECT_THAT(text, HasSubstr("\x1b[1m61.0 ± 8.5\x1b[0m"));
  EXPECT_THAT(text, Not(HasSubstr("*")));
}

TEST(Writers, UnknownFormatsListTheKnownOnes) {
  EXPECT_THAT(message_of(parse_table_format("pdf").status()), HasSubstr("markdown, csv, latex"));
}

// A reader of RFC 4180 that knows nothing of the writer.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines(1, {""});
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string& field = lines.back().back();
    if (quoted) {
      if (text[i] == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else if (text[i] == '"') {
        quoted = false;
      } else {
        field += text[i];
      }
    } else if (text[i] == '"') {
      EXPECT_TRUE(field.empty()) << "a quote inside a plain field";
      quoted = true;
    } else if (text[i] == ',') {
      lines.back().emplace_back();
    } else if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
      lines.push_back({""});
    } else {
      field += text[i];
    }
  }
  EXPECT_FALSE(quoted);
  EXPECT_EQ(lines.back(), std::vector<std::string>{""});
  lines.pop_back();
  return lines;
}

TEST(Writers, CsvIsARectangleWithoutFormulas) {
  const std::vector<Table> tables = {hostile_table(), plain_table()};
  const auto lines = read_csv(write_csv(tables));
  ASSERT_EQ(lines.size(), 1U + 8U + 8U);
  for (const auto& line : lines) {
    EXPECT_EQ(line.size(), lines.front().size());
    for (const std::string& field : line) {
      const bool number =
          !field.empty() && field.find_first_not_of("+-.0123456789e") == std::string::npos;
      EXPECT_TRUE(field.empty() || number ||
                  std::string_view("=+-@\t\r").find(field.front()) == std::string_view::npos)
          << field;
    }
  }
  // Attributes and row headers of both tables have their own columns.
  EXPECT_THAT(lines.front(),
              ::testing::ElementsAre("model", "dataset", "benchmark", "length", "method", "budget",
                                     "column", "metric", "value", "low", "high", "n", "expected",
                                     "best", "text"));
}

TEST(Writers, LatexCompiles) {
  const std::vector<Table> tables = {plain_table(), hostile_table()};
  KVLAB_EXPECT_LATEX_COMPILES_OR_SKIP(write_tables(tables, TableFormat::kLatex));
}

}  // namespace
}  // namespace kvlab
