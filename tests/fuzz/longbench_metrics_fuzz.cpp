// LongBench's metrics on arbitrary bytes: no crash, every score in 0..1, and an answer equal to its
// reference scores what it must.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/longbench/metrics/jieba.h"
#include "benchmarks/longbench/metrics/jieba_hmm.h"
#include "benchmarks/longbench/metrics/metric.h"
#include "harness/base/check.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

constexpr LongBenchMetric kMetrics[] = {
    LongBenchMetric::kAnswerF1,   LongBenchMetric::kRougeL,    LongBenchMetric::kClassification,
    LongBenchMetric::kCount,      LongBenchMetric::kRetrieval, LongBenchMetric::kRetrievalZh,
    LongBenchMetric::kAnswerF1Zh, LongBenchMetric::kRougeLZh,  LongBenchMetric::kCodeSimilarity};

// Reply, reference and class names: the input's parts between zero bytes.
std::vector<std::string> parts_of(std::string_view input) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= input.size();) {
    const size_t end = std::min(input.find('\0', begin), input.size());
    parts.emplace_back(input.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.resize(std::max<size_t>(parts.size(), 2));
  return parts;
}

void fuzz_metrics(std::string_view input) {
  if (input.empty()) {
    return;
  }
  const auto choice = static_cast<uint8_t>(input[0]);
  LongBenchScoring scoring;
  scoring.first_line = static_cast<FirstLine>(choice % 3);
  scoring.code_ratio = static_cast<CodeRatio>(choice / 3 % 2);
  scoring.rouge_recursion_limit = choice / 6 % 2 == 0 ? 0 : choice;
  const std::vector<std::string> parts = parts_of(input.substr(1));
  for (const LongBenchMetric metric : kMetrics) {
    const auto score = longbench_score(metric, scoring, parts[0], {parts[1]}, parts);
    if (score.ok()) {
      KVLAB_CHECK(*score >= 0 && *score <= 1);
    }
  }
  scoring.first_line = FirstLine::kNone;
  const std::string& text = parts[0];
  if (text.find_first_of("\n`#/") == std::string::npos) {
    KVLAB_CHECK(*longbench_score(LongBenchMetric::kCodeSimilarity, scoring, text, {text}, {}) == 1);
  }
  const auto own_class =
      longbench_score(LongBenchMetric::kClassification, scoring, text, {text}, {text});
  KVLAB_CHECK(*own_class == 1);
}

void fuzz_model(std::string_view input) {
  const auto hmm = JiebaHmm::parse(input, "fuzz");
  if (hmm.ok()) {
    const std::u32string text = to_code_points("我们说A1.5%中");
    std::vector<std::u32string_view> words;
    hmm->cut(text, words);
    size_t covered = 0;
    for (const std::u32string_view word : words) {
      covered += word.size();
    }
    KVLAB_CHECK(covered == text.size());
  }
}

}  // namespace
}  // namespace kvlab

// Reads jieba's data (half a second) before the first input is timed.
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  static_cast<void>(kvlab::Jieba::shared());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  kvlab::fuzz_metrics(input);
  kvlab::fuzz_model(input);
  return 0;
}
