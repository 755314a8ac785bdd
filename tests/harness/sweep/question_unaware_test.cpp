// Sweeps whose methods do not see the question: it is run over each arm's compressed cache.
#include <gmock/gmock.h>

#include <chrono>
#include <map>

#include "harness/base/status.h"
#include "results/sqlite.h"
#include "tests/harness/sweep/sweep_process.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

class QuestionUnaware : public SweepProcessTest {
 protected:
  void SetUp() override {
    KVLAB_DEFAULT_MODEL_OR_SKIP(model);
    // float32: where the question is run by itself, sums are rounded differently, and in bfloat16
    // a greedy reply can part from the unsplit prompt's at a near tie.
    sweep_ = {{"model", model.string()},
              {"dtype", "float32"},
              {"benchmarks",
               {{{"name", "ruler"},
                 {"tasks", {"niah_single_1", "vt"}},
                 {"lengths", {1024}},
                 {"samples", 1},
                 {"seed", 7},
                 {"template", "model"}}}},
              {"methods", {"full", "snapkv", "h2o", "expected_attention", "laq"}},
              {"budgets", {64, 4096}},
              {"question_aware", {true, false}}};
  }

  struct Row {
    int64_t question_start;
    int64_t prompt_tokens;
    int64_t kept_max;
    std::string reply;
  };
  // By "task label budget aware".
  std::map<std::string, Row> rows(const std::string& db) {
    std::map<std::string, Row> found;
    const auto database = Database::open(file(db), Database::Mode::kRead, std::chrono::seconds(5));
    EXPECT_TRUE(database.ok()) << database.status();
    auto query = (*database)->prepare(
        "SELECT c.task || ' ' || c.label || ' ' || c.budget || ' ' || c.question_aware, "
        "p.question_start, c.prompt_tokens, c.kept_max, y.reply FROM cells AS c "
        "JOIN results AS r ON r.id = c.result_id JOIN prompts AS p ON p.id = r.prompt_id "
        "JOIN replies AS y ON y.result_id = r.id");
    EXPECT_TRUE(query.ok()) << query.status();
    while (query->step().value()) {
      found[query->text(0)] =
          Row{query->int64(1), query->int64(2), query->int64(3), query->text(4)};
    }
    return found;
  }

  Json sweep_;
};

TEST_F(QuestionUnaware, OnlyTheContextIsCompressed) {
  ASSERT_EQ(run(sweep_, "both.sqlite"), 0) << log("both.sqlite");
  const auto both = rows("both.sqlite");
  EXPECT_EQ(both.size(), 2U * 2U * (1U + 4U * 2U));
  for (const auto& [key, row] : both) {
    EXPECT_GT(row.question_start, 100) << key;
    EXPECT_LT(row.question_start, row.prompt_tokens) << key;
    const bool unaware = key.ends_with(" 0");
    if (key.find(" 64 ") != std::string::npos) {
      EXPECT_EQ(row.kept_max, 64) << key;
    } else {  // everything that could be evicted is kept
      EXPECT_EQ(row.kept_max, unaware ? row.question_start : row.prompt_tokens) << key;
      const std::string full =
          key.substr(0, key.find(' ')) + (unaware ? " full full 0" : " full full 1");
      EXPECT_EQ(row.reply, both.at(full).reply) << key;
    }
  }
  // The full cache does not care where the prompt is split.
  EXPECT_EQ(both.at("vt full full 0").reply, both.at("vt full full 1").reply);
}

TEST_F(QuestionUnaware, RowsDoNotDependOnWhatRanBefore) {
  ASSERT_EQ(run(sweep_, "both.sqlite"), 0) << log("both.sqlite");
  for (const bool aware : {true, false}) {
    Json one = sweep_;
    one["question_aware"] = {aware};
    ASSERT_EQ(run(one, "one_by_one.sqlite"), 0) << log("one_by_one.sqlite");
  }
  const auto both = rows("both.sqlite");
  const auto apart = rows("one_by_one.sqlite");
  ASSERT_EQ(apart.size(), both.size());
  for (const auto& [key, row] : both) {
    EXPECT_EQ(apart.at(key).reply, row.reply) << key;
    EXPECT_EQ(apart.at(key).question_start, row.question_start) << key;
  }
}

}  // namespace
}  // namespace kvlab
