#include "benchmarks/longbench/metrics/metric.h"

#include <algorithm>
#include <optional>

#include "benchmarks/longbench/metrics/answer_f1.h"
#include "benchmarks/longbench/metrics/classification.h"
#include "benchmarks/longbench/metrics/jieba.h"
#include "benchmarks/longbench/metrics/numbers.h"
#include "benchmarks/longbench/metrics/rouge_l.h"
#include "harness/base/check.h"
#include "harness/base/status.h"
#include "harness/text/python_text.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

std::u32string code_points(std::string_view text) { return to_code_points(to_valid_utf8(text)); }

std::u32string_view counted_part(std::u32string_view reply, FirstLine first_line) {
  if (first_line == FirstLine::kNone) {
    return reply;
  }
  size_t begin = 0;
  while (begin < reply.size() &&
         (first_line == FirstLine::kAfterNewlines ? reply[begin] == U'\n'
                                                  : is_python_space(reply[begin]))) {
    ++begin;
  }
  return split_at(reply.substr(begin), U'\n').front();
}

std::u32string words_with_spaces(std::u32string_view text, const Jieba& jieba) {
  std::u32string joined;
  for (const std::u32string_view word : jieba.cut(text)) {
    if (!joined.empty()) {
      joined.push_back(U' ');
    }
    joined.append(word);
  }
  return joined;
}

absl::StatusOr<double> retrieval(std::u32string_view reply, std::u32string_view reference,
                                 std::u32string_view word) {
  const std::optional<std::u32string_view> number = number_after(reference, word);
  if (!number) {
    return invalid_argument("the reference answer \"{}\" has no number after \"{}\"",
                            to_utf8(reference), to_utf8(word));
  }
  return number_share(reply, *number);
}

absl::StatusOr<double> score_one(LongBenchMetric metric, const LongBenchScoring& scoring,
                                 std::u32string_view reply, std::u32string_view reference,
                                 const std::vector<std::u32string>& classes) {
  switch (metric) {
    case LongBenchMetric::kAnswerF1:
      return answer_f1(reply, reference);
    case LongBenchMetric::kAnswerF1Zh: {
      KVLAB_ASSIGN_OR_RETURN(const Jieba* const jieba, Jieba::shared());
      return answer_f1_zh(reply, reference, *jieba);
    }
    case LongBenchMetric::kRougeL:
      return rouge_l(reply, reference,
                     rouge_walk_frames(scoring.rouge_recursion_limit, /*chinese=*/false));
    case LongBenchMetric::kRougeLZh: {
      KVLAB_ASSIGN_OR_RETURN(const Jieba* const jieba, Jieba::shared());
      return rouge_l(words_with_spaces(reply, *jieba), words_with_spaces(reference, *jieba),
                     rouge_walk_frames(scoring.rouge_recursion_limit, /*chinese=*/true));
    }
    case LongBenchMetric::kClassification:
      return classification_score(reply, reference, classes);
    case LongBenchMetric::kCount:
      return number_share(reply, reference);
    case LongBenchMetric::kRetrieval:
      return retrieval(reply, reference, U"Paragraph ");
    case LongBenchMetric::kRetrievalZh:
      return retrieval(reply, reference, U"段落");
    case LongBenchMetric::kCodeSimilarity:
      return code_similarity(reply, reference, scoring.code_ratio);
  }
  KVLAB_CHECK(false);
}

}  // namespace

std::string_view metric_name(LongBenchMetric metric) {
  switch (metric) {
    case LongBenchMetric::kAnswerF1:
    case LongBenchMetric::kAnswerF1Zh:
      return "F1";
    case LongBenchMetric::kRougeL:
    case LongBenchMetric::kRougeLZh:
      return "ROUGE-L";
    case LongBenchMetric::kClassification:
      return "classification";
    case LongBenchMetric::kCount:
      return "count";
    case LongBenchMetric::kRetrieval:
    case LongBenchMetric::kRetrievalZh:
      return "retrieval";
    case LongBenchMetric::kCodeSimilarity:
      return "code similarity";
  }
  KVLAB_CHECK(false);
}

absl::StatusOr<double> longbench_score(LongBenchMetric metric, const LongBenchScoring& scoring,
                                       std::string_view reply,
                                       const std::vector<std::string>& references,
                                       const std::vector<std::string>& classes) {
  const std::u32string reply_text = code_points(reply);
  const std::u32string_view counted = counted_part(reply_text, scoring.first_line);
  std::vector<std::u32string> class_names;
  for (const std::string& name : classes) {
    class_names.push_back(code_points(name));
  }
  double best = 0;
  for (const std::string& reference : references) {
    KVLAB_ASSIGN_OR_RETURN(const double score, score_one(metric, scoring, counted,
                                                         code_points(reference), class_names));
    best = std::max(best, score);
  }
  return best;
}

}  // namespace kvlab
