#include "tests/reports/synthetic_results.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "harness/base/status.h"
#include "results/store.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

// Sinks, a recent part and a few others, different for each layer and head.
Selection random_selection(int64_t prompt_len, int64_t entries, std::mt19937_64& random) {
  Selection selection;
  selection.prompt_len = prompt_len;
  selection.kept.resize(8, std::vector<std::vector<int32_t>>(2));
  for (auto& layer : selection.kept) {
    for (auto& head : layer) {
      std::set<int32_t> kept = {0, 1, 2, 3};
      while (static_cast<int64_t>(kept.size()) < entries) {
        const bool recent = (random() & 1) != 0;
        const auto at = recent ? prompt_len - 1 - static_cast<int64_t>(random() % 64)
                               : static_cast<int64_t>(random() % static_cast<uint64_t>(prompt_len));
        kept.insert(static_cast<int32_t>(at));
      }
      head.assign(kept.begin(), kept.end());
    }
  }
  return selection;
}

class Writer final {
 public:
  explicit Writer(const SyntheticSizes& sizes) : sizes_(sizes) {}
  std::vector<ResultRecord> results(SampleRecord& sample, int64_t index);

 private:
  ResultRecord result(const SampleRecord& sample, const std::string& method,
                      const std::string& budget, double mean, bool with_selection);

  SyntheticSizes sizes_;
  std::mt19937_64 random_{1};
};

ResultRecord Writer::result(const SampleRecord& sample, const std::string& method,
                            const std::string& budget, double mean, bool with_selection) {
  // Whole steps of 20 and many ties, as RULER's scores. A sum of uniform numbers, since the
  // standard library's normal distribution is not the same everywhere.
  double noise = -2;
  for (int i = 0; i < 4; ++i) {
    noise += static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  ResultRecord record = test_result(
      method, budget, std::clamp(std::round((mean + 26 * noise) / 20) * 20, 0.0, 100.0));
  record.timings.score_s = 0.01 + 0.001 * static_cast<double>(method.size() % 16);
  record.timings.draft_s = method == "laq" ? 0.5 : 0;
  record.timings.prefill_s = static_cast<double>(sample.length) / 1000;
  const bool full = budget == "full";
  record.cache_bytes = (full ? sample.length : std::atoll(budget.c_str())) * 90 * 64 * 4;
  record.kept.total = record.cache_bytes / (64 * 4);
  if (with_selection && !full) {
    record.selection = random_selection(sample.prompt_tokens, std::atoll(budget.c_str()), random_);
  }
  return record;
}

std::vector<ResultRecord> Writer::results(SampleRecord& sample, int64_t index) {
  static const std::vector<std::string> kNames = {"snapkv", "pyramidkv", "streaming_llm", "laq",
                                                  "h2o",    "tova",      "knorm",         "random"};
  const int64_t depth = 10 * (index % 11);
  sample.extra = {{"depth", depth}};
  if (sizes_.bulky) {
    sample.rendered_text = fmt::format("prompt {} of {}", index, sample.task);
  }
  // Needles in the middle of long prompts are harder.
  const double where = -0.2 * static_cast<double>(std::min(depth, 100 - depth)) -
                       static_cast<double>(sample.length) / 600;
  std::vector<ResultRecord> all = {result(sample, "full", "full", 98 + where / 4, false)};
  const int64_t methods = sizes_.methods + (sizes_.extra_name.empty() ? 0 : 1);
  for (int64_t m = 0; m < methods; ++m) {
    const auto at = static_cast<size_t>(m);
    const std::string name = m == sizes_.methods  ? sizes_.extra_name
                             : at < kNames.size() ? kNames[at]
                                                  : fmt::format("method_{}", m);
    for (int64_t b = 0; b < sizes_.budgets; ++b) {
      all.push_back(
          result(sample, name, std::to_string(64 << b),
                 45 + 12 * static_cast<double>(b) + 5 * static_cast<double>(m % 7) + where,
                 sizes_.bulky && index == 0));
    }
  }
  return all;
}

}  // namespace

absl::Status write_synthetic_results(const std::filesystem::path& path,
                                     const SyntheticSizes& sizes) {
  KVLAB_ASSIGN_OR_RETURN(auto store, ResultStore::open(path, ResultStore::Mode::kCreate));
  KVLAB_RETURN_IF_ERROR(store->begin_run(test_run()).status());
  static const std::vector<std::string> kTasks = {"niah_single_1", "niah_multikey_2", "vt", "fwe"};
  Writer writer(sizes);
  for (int64_t index = 0; index < sizes.samples; ++index) {
    for (int64_t t = 0; t < sizes.tasks; ++t) {
      for (int64_t l = 0; l < sizes.lengths; ++l) {
        const auto at = static_cast<size_t>(t);
        SampleRecord sample = test_sample(
            at < kTasks.size() ? kTasks[at] : fmt::format("task_{}", t), index, int64_t{2048} << l);
        const std::vector<ResultRecord> results = writer.results(sample, index);
        KVLAB_RETURN_IF_ERROR(store->write_sample(sample, results).status());
      }
    }
  }
  return store->finish_run("done");
}

}  // namespace kvlab
