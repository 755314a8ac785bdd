// The scorer's quirks, one by one. The numbers are worked out by hand from the definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "benchmarks/longbench/metrics/answer_f1.h"
#include "benchmarks/longbench/metrics/classification.h"
#include "benchmarks/longbench/metrics/code_similarity.h"
#include "benchmarks/longbench/metrics/jieba_hmm.h"
#include "benchmarks/longbench/metrics/lcs_bits.h"
#include "benchmarks/longbench/metrics/metric.h"
#include "benchmarks/longbench/metrics/numbers.h"
#include "benchmarks/longbench/metrics/rouge_l.h"
#include "benchmarks/longbench/metrics/string_ratio.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "harness/text/python_text.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

TEST(PythonText, AgreesWithPythonOnEveryAssignedCodePoint) {
  const Json file =
      read_json_file(std::filesystem::path(KVLAB_TEST_DIR) / "golden/longbench/unicode.json")
          .value();
  std::u32string lower;
  std::u32string after_sigma;
  std::u32string before_sigma;
  std::u32string between;
  std::string word;
  std::string digit;
  std::string space;
  for (const Json& range : file["ranges"]) {
    for (char32_t c = range[0].get<uint32_t>(); c <= range[1].get<uint32_t>(); ++c) {
      lower += python_lower({&c, 1});
      after_sigma += python_lower(std::u32string(U"AΣ") + c);
      before_sigma += python_lower(std::u32string(1, c) + U"Σ");
      between += python_lower(std::u32string(U"A") + c + U"Σ");
      word += is_python_word_character(c) ? '1' : '0';
      digit += is_python_digit(c) ? '1' : '0';
      space += is_python_space(c) ? '1' : '0';
    }
  }
  EXPECT_EQ(sha256_hex(to_utf8(lower)), file["lower"]);
  EXPECT_EQ(sha256_hex(to_utf8(after_sigma)), file["lower_after_sigma"]);
  EXPECT_EQ(sha256_hex(to_utf8(before_sigma)), file["lower_before_sigma"]);
  EXPECT_EQ(sha256_hex(to_utf8(between)), file["lower_between"]);
  EXPECT_EQ(sha256_hex(word), file["word"]);
  EXPECT_EQ(sha256_hex(digit), file["digit"]);
  EXPECT_EQ(sha256_hex(space), file["space"]);
}

TEST(PythonText, RoundsAsPythonDoes) {
  EXPECT_EQ(python_round_2(2.675), 2.67);  // the binary value lies below
  EXPECT_EQ(python_round_2(0.125), 0.12);  // a true tie goes to even
  EXPECT_EQ(python_round_2(0.375), 0.38);
  EXPECT_EQ(numpy_round_mean_percent({0.26755}), 26.76);  // 2675.5 rounds to the even 2676
  EXPECT_EQ(numpy_round_mean_percent({0.26745}), 26.74);
}

TEST(AnswerF1, LowersDropsPunctuationAndArticles) {
  EXPECT_EQ(answer_f1(U"The  Cat!", U"a cat"), 1.0);
  EXPECT_EQ(answer_f1(U"can't", U"cant"), 1.0);
  EXPECT_EQ(answer_f1(U"theatre", U"atre"), 0.0);  // an article inside a word stays
  EXPECT_DOUBLE_EQ(answer_f1(U"cat cat dog", U"cat"), 2 * (1.0 / 3) / (1.0 / 3 + 1));
}

TEST(AnswerF1, IsZeroWhereNothingIsLeft) {
  EXPECT_EQ(answer_f1(U"", U""), 0.0);
  EXPECT_EQ(answer_f1(U"The.", U"a"), 0.0);
}

TEST(Rouge, CountsDistinctWordsAndKeepsCase) {
  EXPECT_NEAR(rouge_l(U"a a a b", U"a b", 0), 1.0, 1e-7);
  EXPECT_LT(rouge_l(U"a b", U"a b", 0), 1.0);  // the 1e-8 in the denominator
  EXPECT_EQ(rouge_l(U"Cat", U"cat", 0), 0.0);
}

TEST(Rouge, IsZeroForTextsWithoutSentences) {
  EXPECT_EQ(rouge_l(U"", U"cat", 0), 0.0);
  EXPECT_EQ(rouge_l(U"...", U"cat", 0), 0.0);
  EXPECT_EQ(rouge_l(U"cat", U"..", 0), 0.0);
  EXPECT_GT(rouge_l(U" ", U"\t", 0), 0.9);  // both hold one empty word
}

TEST(Rouge, ScoresUpToTheDepthPythonAllows) {
  const auto text = [](int words) {
    std::u32string out;
    for (int i = 0; i < words; ++i) {
      out += to_code_points(std::to_string(i));
      out += U" ";
    }
    return out;
  };
  // Measured with Python 3.11 and LongBench's call depth: 990 words for English tasks.
  const int64_t english = rouge_walk_frames(1000, /*chinese=*/false);
  EXPECT_GT(rouge_l(text(990), text(990), english), 0.99);
  EXPECT_EQ(rouge_l(text(991), text(991), english), 0.0);
  const int64_t chinese = rouge_walk_frames(1000, /*chinese=*/true);
  EXPECT_GT(rouge_l(text(989), text(989), chinese), 0.99);
  EXPECT_EQ(rouge_l(text(990), text(990), chinese), 0.0);
  EXPECT_GT(rouge_l(text(5000), text(5000), rouge_walk_frames(0, false)), 0.99);
}

// The table and the recursion as the package has them; the slow reference.
double slow_rouge_l(const std::vector<std::vector<int>>& reply,
                    const std::vector<std::vector<int>>& reference, int64_t max_frames) {
  std::set<int> common;
  std::set<int> reply_words;
  std::set<int> reference_words;
  for (const auto& y : reply) {
    reply_words.insert(y.begin(), y.end());
    for (const auto& x : reference) {
      reference_words.insert(x.begin(), x.end());
      std::vector<std::vector<int>> t(x.size() + 1, std::vector<int>(y.size() + 1, 0));
      for (size_t i = 1; i <= x.size(); ++i) {
        for (size_t j = 1; j <= y.size(); ++j) {
          t[i][j] = x[i - 1] == y[j - 1] ? t[i - 1][j - 1] + 1 : std::max(t[i - 1][j], t[i][j - 1]);
        }
      }
      const std::function<bool(size_t, size_t, int64_t)> walk = [&](size_t i, size_t j,
                                                                    int64_t frame) {
        if (max_frames > 0 && frame > max_frames) {
          return false;
        }
        if (i == 0 || j == 0) {
          return true;
        }
        if (x[i - 1] == y[j - 1]) {
          common.insert(x[i - 1]);
          return walk(i - 1, j - 1, frame + 1);
        }
        return t[i - 1][j] > t[i][j - 1] ? walk(i - 1, j, frame + 1) : walk(i, j - 1, frame + 1);
      };
      if (!walk(x.size(), y.size(), 1)) {
        return 0;
      }
    }
  }
  const double n = static_cast<double>(common.size());
  const double r = n / static_cast<double>(reference_words.size());
  const double p = n / static_cast<double>(reply_words.size());
  return 2.0 * ((p * r) / (p + r + 1e-8));
}

TEST(Rouge, EqualsTheTableAndRecursionOnRandomSentences) {
  std::mt19937 random(7);
  const auto texts = [&](std::vector<std::vector<int>>& sentences) {
    std::u32string text;
    sentences.resize(1 + random() % 3);
    for (auto& sentence : sentences) {
      sentence.resize(1 + random() % 150);
      for (int& word : sentence) {
        word = static_cast<int>(random() % (2 + random() % 30));
        text += U"w";
        text += to_code_points(std::to_string(word));
        text += U" ";
      }
      text += U".";
    }
    return text;
  };
  for (int i = 0; i < 300; ++i) {
    std::vector<std::vector<int>> reply;
    std::vector<std::vector<int>> reference;
    const std::u32string reply_text = texts(reply);
    const std::u32string reference_text = texts(reference);
    const int64_t limit = i % 3 == 0 ? 0 : 1 + static_cast<int64_t>(random() % 250);
    EXPECT_EQ(rouge_l(reply_text, reference_text, limit), slow_rouge_l(reply, reference, limit));
  }
}

TEST(CodeSimilarity, TakesTheFirstLineWithoutCommentOrFence) {
  EXPECT_EQ(code_similarity(U"\n\n# no\n// no\n```\nx = 1\ny", U"x = 1", CodeRatio::kDifflib), 1.0);
  EXPECT_EQ(code_similarity(U"# only", U"x", CodeRatio::kDifflib), 0.0);
  EXPECT_EQ(code_similarity(U"# only", U"", CodeRatio::kDifflib), 1.0);  // equal: both empty
  EXPECT_EQ(code_similarity(U"\n", U"x", CodeRatio::kLevenshtein), 0.0);
}

TEST(StringRatio, IgnoresFrequentCharactersOfLongReferences) {
  const std::u32string reference = std::u32string(150, U'a') + std::u32string(50, U'b');
  EXPECT_EQ(difflib_ratio(U"bbbb", reference), 0.0);  // every character is "popular"
  EXPECT_EQ(difflib_ratio(U"bbbb", reference.substr(1)), 8.0 / 203);
  EXPECT_EQ(difflib_ratio(U"aaaa", reference), 8.0 / 204);  // a match at the start is lengthened
  EXPECT_EQ(levenshtein_ratio(U"bbbb", reference), 1.0 - 196.0 / 204);
}

TEST(Classification, SkipsTheNameAfterEachDroppedOne) {
  const std::vector<std::u32string> classes = {U"state", U"stat", U"statement", U"other"};
  // "state" is dropped, so "stat" is not looked at and still counts beside "statement".
  EXPECT_EQ(classification_score(U"statement", U"statement", classes), 0.5);
  EXPECT_EQ(classification_score(U"other statement", U"other", classes), 0.25);
  EXPECT_EQ(classification_score(U"none", U"other", classes), 0.0);
}

TEST(Numbers, ComparesAsWritten) {
  EXPECT_EQ(number_share(U"7, 07 and 7", U"7"), 2.0 / 3);
  EXPECT_EQ(number_share(U"none", U"7"), 0.0);
  EXPECT_EQ(number_share(U"\u0664", U"4"), 0.0);  // other scripts' digits are numbers too
  EXPECT_EQ(number_after(U"See Paragraph x, Paragraph 12.", U"Paragraph "), U"12");
  EXPECT_EQ(number_after(U"Paragraph", U"Paragraph "), std::nullopt);
}

TEST(LongBenchScore, TakesTheBestReferenceAndTheFirstLine) {
  const LongBenchScoring newlines = {.first_line = FirstLine::kAfterNewlines};
  const LongBenchScoring white_space = {.first_line = FirstLine::kAfterWhiteSpace};
  const auto score = [](const LongBenchScoring& scoring, std::string_view reply) {
    return longbench_score(LongBenchMetric::kAnswerF1, scoring, reply, {"x", "cat"}, {}).value();
  };
  EXPECT_EQ(score(newlines, "\n\ncat\ndog"), 1.0);
  EXPECT_EQ(score(newlines, " \ncat"), 0.0);
  EXPECT_EQ(score(white_space, " \ncat"), 1.0);
  EXPECT_EQ(score({}, "cat\ncat"), 2 * 0.5 / 1.5);
  EXPECT_EQ(longbench_score(LongBenchMetric::kAnswerF1, {}, "cat", {}, {}).value(), 0.0);
}

TEST(LongBenchScore, RetrievalReferenceWithoutNumberIsAnError) {
  const auto score = longbench_score(LongBenchMetric::kRetrieval, {}, "1", {"none"}, {});
  EXPECT_THAT(std::string(score.status().message()), testing::HasSubstr("\"none\" has no number"));
}

TEST(LongBenchScore, SurvivesInvalidUtf8) {
  EXPECT_EQ(longbench_score(LongBenchMetric::kAnswerF1, {}, "\xFF\xC3 cat", {"cat"}, {}).value(),
            2 * 0.5 / 1.5);
}

TEST(JiebaHmm, BadLinesAreErrorsThatNameTheLine) {
  for (const char* text : {"start\tB\t-1\nemit\tX\t一\t-1\n", "start\tB\t-1\nemit\tB\t一二\t-1\n",
                           "start\tB\t-1\ntrans\tB\tE\tx\n", "start\tB\t-1\n\n"}) {
    const auto hmm = JiebaHmm::parse(text, "hmm.tsv");
    EXPECT_THAT(std::string(hmm.status().message()), testing::HasSubstr("hmm.tsv, line 2"));
  }
  EXPECT_FALSE(JiebaHmm::parse("start\tB\t-1\n", "hmm.tsv").ok());
}

}  // namespace
}  // namespace kvlab
