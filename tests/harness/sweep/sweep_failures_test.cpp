// One cell that runs out of memory, throws or refuses does not end the sweep, and changes no other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <new>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "harness/sweep/plan.h"
#include "harness/sweep/runner.h"
#include "harness/sweep/sweep_config.h"
#include "tests/results/fixtures.h"
#include "tests/support/shared_data.h"
#include "tests/support/tiny_model.h"

namespace kvlab {
namespace {

using ::testing::HasSubstr;

enum class Fault { kNone, kOutOfMemory, kOutOfMemoryBesideOthers, kTorchError, kStatus };

// A method that behaves as another one until its fault comes.
class FaultyPolicy final : public EvictionPolicy {
 public:
  FaultyPolicy(std::shared_ptr<const EvictionPolicy> inner, Fault fault)
      : inner_(std::move(inner)), fault_(fault) {}
  const std::string& name() const override { return inner_->name(); }
  const Json& resolved_params() const override { return inner_->resolved_params(); }
  absl::Status check(const ModelConfig& model, std::optional<Budget> budget) const override {
    return inner_->check(model, budget);
  }
  PrefillNeeds needs() const override { return inner_->needs(); }
  absl::StatusOr<SelectionResult> select(const SelectionInput& input) const override {
    const bool second_try = calls_++ % 2 == 1;
    switch (fault_) {
      case Fault::kNone:
        break;
      case Fault::kOutOfMemory:
        throw std::bad_alloc();
      case Fault::kOutOfMemoryBesideOthers:
        if (!second_try) {
          throw std::bad_alloc();
        }
        break;
      case Fault::kTorchError:
        TORCH_CHECK(false, "a shape that does not fit\nand a trace");
      case Fault::kStatus:
        return absl::FailedPreconditionError("not with this prompt");
    }
    return inner_->select(input);
  }
  absl::Status check_by_layers() const override { return inner_->check_by_layers(); }
  absl::StatusOr<LayerSelector> select_by_layers(const SelectionInput& input) const override {
    return inner_->select_by_layers(input);
  }

 private:
  std::shared_ptr<const EvictionPolicy> inner_;
  Fault fault_;
  mutable int calls_ = 0;  // two for each sample where the first one fails
};

class SilentObserver final : public RunObserver {
 public:
  void on_start(const PlanSummary&) override {}
  void on_sample(double, std::string_view) override {}
  void on_message(std::string_view text) override { messages += std::string(text) + "\n"; }
  std::string messages;
};

class SweepFailures : public ::testing::Test {
 protected:
  void SetUp() override {
    KVLAB_DEFAULT_MODEL_OR_SKIP(model);
    ASSERT_TRUE(make_tiny_model(model, folder_.path() / "tiny").ok());
    const Json sweep = {{"model", (folder_.path() / "tiny").string()},
                        {"benchmarks",
                         {{{"name", "ruler"},
                           {"tasks", {"vt", "fwe"}},
                           {"lengths", {1024}},
                           {"samples", 2},
                           {"seed", 7}}}},
                        {"methods", {"full", "snapkv", "streaming_llm"}},
                        {"budgets", {32, 64}}};
    ASSERT_TRUE(write_file(folder_.path() / "sweep.json", sweep.dump()).ok());
    reference_ = run(Fault::kNone, "reference.sqlite");
    ASSERT_EQ(reference_.size(), 4U * 5U);
  }

  // Status, reason, score and reply of every cell, with the fault in SnapKV at budget 32.
  std::map<std::string, std::string> run(Fault fault, const std::string& name) {
    SweepPlan plan =
        make_plan(load_sweep_config(folder_.path() / "sweep.json").value(), {}).value();
    for (Arm& arm : plan.arms) {
      if (arm.method.name == "snapkv" && arm.budget_text() == "32") {
        arm.policy = std::make_shared<FaultyPolicy>(arm.policy, fault);
      }
    }
    auto store = ResultStore::open(folder_.path() / name, ResultStore::Mode::kCreate).value();
    EXPECT_TRUE(store->begin_run(test_run()).ok());
    SilentObserver observer;
    const auto outcome = SweepRunner(plan, *store, {}, observer).run();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    messages_ = observer.messages;
    std::map<std::string, std::string> cells;
    auto rows = store->database()
                    .prepare(
                        "SELECT c.sample || ' ' || c.label || ' ' || c.budget, c.status || ' ' "
                        "|| coalesce(c.reason, '') || coalesce(c.score, '') || "
                        "coalesce(y.reply, '') FROM cells c LEFT JOIN replies y "
                        "USING (result_id)")
                    .value();
    while (rows.step().value()) {
      cells[rows.text(0)] = rows.text(1);
    }
    return cells;
  }

  void expect_only_that_arm_failed(const std::map<std::string, std::string>& cells,
                                   const std::string& reason) {
    ASSERT_EQ(cells.size(), reference_.size());
    for (const auto& [key, text] : cells) {
      if (key.ends_with("snapkv 32")) {
        EXPECT_EQ(text, "failed " + reason) << key;
      } else {
        EXPECT_EQ(text, reference_.at(key)) << key;
      }
    }
    EXPECT_THAT(messages_, HasSubstr("snapkv at budget 32"));
  }

  TemporaryFolder folder_;
  std::map<std::string, std::string> reference_;
  std::string messages_;
};

TEST_F(SweepFailures, OutOfMemoryInOneCellIsARowWithItsReason) {
  expect_only_that_arm_failed(run(Fault::kOutOfMemory, "a.sqlite"), "out of memory");
}

TEST_F(SweepFailures, AnErrorInsideLibTorchIsARowWithItsFirstLine) {
  expect_only_that_arm_failed(run(Fault::kTorchError, "b.sqlite"), "a shape that does not fit");
}

TEST_F(SweepFailures, ARefusalIsARowWithItsReason) {
  expect_only_that_arm_failed(run(Fault::kStatus, "c.sqlite"), "not with this prompt");
}

TEST_F(SweepFailures, ArmsThatAreTooMuchTogetherRunOneByOne) {
  EXPECT_EQ(run(Fault::kOutOfMemoryBesideOthers, "d.sqlite"), reference_);
}

class PlannedCells : public ::testing::Test {
 protected:
  void SetUp() override {
    KVLAB_DEFAULT_MODEL_OR_SKIP(model);
    ASSERT_TRUE(make_tiny_model(model, folder_.path() / "tiny").ok());
    sweep_ = {{"model", (folder_.path() / "tiny").string()},
              {"benchmarks",
               {{{"name", "longbench"},
                 {"folder", folder_.path().string()},
                 {"tasks", {"hotpotqa"}},
                 {"max_prompt_tokens", 200}}}},
              {"methods", {"full", "snapkv"}},
              {"budgets", {64}},
              {"question_aware", {true, false}}};
  }

  void write_record(const std::string& context, const std::string& question) {
    const Json record = {
        {"_id", "one"},      {"dataset", "hotpotqa"}, {"language", "en"},      {"context", context},
        {"input", question}, {"answers", {"Oslo"}},   {"all_classes", Json()}, {"length", 1}};
    ASSERT_TRUE(write_file(folder_.path() / "hotpotqa.jsonl", record.dump() + "\n").ok());
  }

  absl::StatusOr<SweepPlan> plan() {
    EXPECT_TRUE(write_file(folder_.path() / "sweep.json", sweep_.dump()).ok());
    KVLAB_ASSIGN_OR_RETURN(const SweepConfig config,
                           load_sweep_config(folder_.path() / "sweep.json"));
    return make_plan(config, {});
  }

  // "snapkv 64" to why it is skipped, "" where it runs, of the arms that see the question or not.
  std::map<std::string, std::string> skipped(const SweepPlan& plan, bool question_aware) {
    std::map<std::string, std::string> reasons;
    for (const PlannedArm& cell : plan.models.at(0).samples.at(0).arms) {
      const Arm& arm = plan.arms.at(cell.arm);
      if (arm.question_aware == question_aware) {
        reasons[arm.method.label + " " + arm.budget_text()] = cell.skip_reason;
      }
    }
    return reasons;
  }

  static std::string words(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += "word ";
    }
    return text;
  }

  TemporaryFolder folder_;
  Json sweep_;
};

TEST_F(PlannedCells, AQuestionThatTruncationCutsIsSkippedAndSaysWhy) {
  write_record(words(400), words(300) + "end?");
  for (const Json& modes : {Json{true, false}, Json{false}}) {
    sweep_["question_aware"] = modes;
    const auto plan = this->plan();
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_THAT(skipped(*plan, false).at("snapkv 64"), HasSubstr("question"));
    EXPECT_THAT(skipped(*plan, false).at("full full"), HasSubstr("question"));
    if (modes.size() == 2) {
      EXPECT_EQ(skipped(*plan, true).at("snapkv 64"), "");
    }
  }
}

TEST_F(PlannedCells, SharesAreOfWhatIsCompressed) {
  write_record(words(40), words(80) + "end?");
  sweep_["methods"] = {"snapkv"};
  sweep_["budgets"] = {{{"share", 0.25}}};  // of the whole prompt above SnapKV's window of 32
  const auto plan = this->plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  const PlannedSample& sample = plan->models.at(0).samples.at(0);
  ASSERT_GE(sample.prompt_tokens / 4, 32);
  ASSERT_LT(sample.context_tokens / 4, 32);
  EXPECT_EQ(skipped(*plan, true).at("snapkv 25%"), "");
  EXPECT_THAT(skipped(*plan, false).at("snapkv 25%"), HasSubstr("can't hold"));
}

TEST_F(PlannedCells, AWholePromptShorterThanTheWindowIsKept) {
  write_record("", "?");
  sweep_["methods"] = {{{"name", "snapkv"}, {"params", {{"window", 512}}}}};
  sweep_["budgets"] = {{{"share", 1.0}}};
  sweep_["question_aware"] = true;
  const auto plan = this->plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(skipped(*plan, true).at("snapkv 100%"), "");
}

TEST_F(PlannedCells, MethodsThatCannotShareAPrefillAreRefused) {
  write_record(words(40), "end?");
  sweep_["methods"] = {{{"name", "expected_attention"}, {"params", {{"sinks", {0, 4}}}}}};
  EXPECT_THAT(message_of(plan().status()), HasSubstr("must agree"));
}

}  // namespace
}  // namespace kvlab
