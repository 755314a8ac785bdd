// Makes a results database of any size, through the writer that sweeps use: for measuring reports,
// and for looking at them without a model.
//   generate_results FILE [SAMPLES_PER_TASK] [TASKS] [METHODS] [BUDGETS]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

#include "harness/base/status.h"
#include "results/store.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

struct Sizes {
  int64_t samples = 20, tasks = 4, methods = 4, budgets = 3;
};

// Even-ish keeping: sinks, a recent part and a few others, different for each layer and head.
Selection random_selection(int64_t prompt_len, int64_t entries, std::mt19937_64& random) {
  Selection selection;
  selection.prompt_len = prompt_len;
  selection.kept.resize(4, std::vector<std::vector<int32_t>>(2));
  for (auto& layer : selection.kept) {
    for (auto& head : layer) {
      std::set<int32_t> kept;
      for (int32_t i = 0; i < 4; ++i) {
        kept.insert(i);
      }
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

absl::Status generate(const std::filesystem::path& path, const Sizes& sizes) {
  KVLAB_ASSIGN_OR_RETURN(auto store, ResultStore::open(path, ResultStore::Mode::kCreate));
  KVLAB_RETURN_IF_ERROR(store->begin_run(test_run()).status());
  const std::vector<std::string> names = {"snapkv", "pyramidkv", "streaming_llm", "laq",
                                          "h2o",    "tova",      "knorm",         "random"};
  const std::vector<std::string> tasks = {"niah_single_1", "niah_multikey_2", "vt", "fwe"};
  std::mt19937_64 random(1);
  std::normal_distribution<> noise(0, 15);
  const bool small = sizes.samples <= 50;
  for (int64_t index = 0; index < sizes.samples; ++index) {
    for (int64_t t = 0; t < sizes.tasks; ++t) {
      for (const int64_t length : {2048, 4096}) {
        const std::string task = t < 4 ? tasks[static_cast<size_t>(t)] : fmt::format("task_{}", t);
        SampleRecord sample = test_sample(task, index, length);
        sample.extra = {{"depth", 10 * (index % 11)}};
        if (small) {
          sample.rendered_text = fmt::format("prompt {} of {}", index, task);
        }
        std::vector<ResultRecord> results;
        const auto add = [&](const std::string& method, const std::string& budget, double mean) {
          // Whole steps of 20 and many ties, as RULER's scores.
          const double score = std::clamp(std::round((mean + noise(random)) / 20) * 20, 0.0, 100.0);
          ResultRecord result = test_result(method, budget, score);
          result.timings.score_s = 0.01 + 0.001 * static_cast<double>(method.size());
          result.timings.draft_s = method == "laq" ? 0.5 : 0;
          result.timings.prefill_s = static_cast<double>(length) / 1000;
          result.cache_bytes =
              (budget == "full" ? length : std::atoll(budget.c_str())) * 90 * 64 * 4;
          result.kept.total = result.cache_bytes / (64 * 4);
          if (small && index == 0 && budget != "full") {
            result.selection =
                random_selection(sample.prompt_tokens, std::atoll(budget.c_str()), random);
          }
          results.push_back(std::move(result));
        };
        add("full", "full", 95);
        for (int64_t m = 0; m < sizes.methods; ++m) {
          for (int64_t b = 0; b < sizes.budgets; ++b) {
            const auto m_index = static_cast<size_t>(m);
            const std::string name =
                m_index < names.size() ? names[m_index] : fmt::format("method_{}", m);
            add(name, std::to_string(64 << b),
                40 + 12 * static_cast<double>(b) + 3 * static_cast<double>(m % 7));
          }
        }
        KVLAB_RETURN_IF_ERROR(store->write_sample(sample, results).status());
      }
    }
  }
  return store->finish_run("done");
}

}  // namespace
}  // namespace kvlab

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: generate_results FILE [SAMPLES_PER_TASK TASKS METHODS BUDGETS]\n");
    return 2;
  }
  kvlab::Sizes sizes;
  int64_t* const fields[] = {&sizes.samples, &sizes.tasks, &sizes.methods, &sizes.budgets};
  for (int i = 2; i < argc && i < 6; ++i) {
    *fields[i - 2] = std::atoll(argv[i]);
  }
  const absl::Status status = kvlab::generate(argv[1], sizes);
  if (!status.ok()) {
    fmt::print(stderr, "{}\n", kvlab::message_of(status));
    return 1;
  }
  return 0;
}
