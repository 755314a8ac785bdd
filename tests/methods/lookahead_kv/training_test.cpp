// A training run that is stopped and resumed gives the numbers of an unbroken one.
#include <gmock/gmock.h>

#include "datasets/training/seeded_random.h"
#include "harness/base/files.h"
#include "harness/base/status.h"
#include "methods/lookahead_kv/training/trainer.h"
#include "methods/lookahead_kv/training/training_log.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

class Recorder final : public TrainingObserver {
 public:
  void on_start(int64_t steps_done, int64_t total_steps) override {
    started_at = steps_done;
    total = total_steps;
  }
  absl::Status on_step(const TrainingStep& step) override {
    losses.push_back(step.loss);
    return stop_after > 0 && static_cast<int64_t>(losses.size()) == stop_after
               ? absl::AbortedError("stopped by the test")
               : absl::OkStatus();
  }
  absl::Status on_evaluation(const HeldOutEvaluation& evaluation) override {
    held_out.push_back(evaluation.loss);
    return absl::OkStatus();
  }
  std::vector<double> losses;
  std::vector<double> held_out;
  int64_t started_at = 0, total = 0;
  int64_t stop_after = 0;
};

class Training : public ::testing::Test {
 protected:
  void SetUp() override {
    recipe_.model_dir = golden_dir() / "models" / "tiny-gqa";
    recipe_.shape = LookaheadShape::paper();
    recipe_.shape.num_tokens = 8;
    recipe_.held_out = 2;
    recipe_.batch = 2;
    recipe_.passes = 2;
    recipe_.warmup_steps = 2;
    recipe_.checkpoint_every = 1;
    recipe_.evaluate_every = 3;
    recipe_.recall_budgets = {16};
    recipe_.hash = "recipe";
    base_ = CausalLm::load(recipe_.model_dir, {}).value();
    frozen_ = FrozenModel::load(recipe_.model_dir, at::kFloat).value();
    SeededRandom random(5);
    for (int i = 0; i < 10; ++i) {
      TrainingSample sample;
      for (int64_t k = random.between(40, 80); k > 0; --k) {
        sample.prompt_ids.push_back(static_cast<int32_t>(random.below(frozen_->config.vocab_size)));
      }
      sample.reply_ids.assign(sample.prompt_ids.begin(), sample.prompt_ids.begin() + 12);
      samples_.push_back(sample);
    }
  }

  absl::StatusOr<TrainingOutcome> run(const std::filesystem::path& out, Recorder& recorder,
                                      const std::filesystem::path& keep_passes = {}) {
    FrozenPasses passes(*base_, keep_passes, "weights");
    return train_adapter(recipe_, passes, *frozen_, samples_, "data", out, 0, recorder);
  }
  static std::filesystem::path fresh(const std::string& name) {
    const auto dir = std::filesystem::path(::testing::TempDir()) / name;
    std::filesystem::remove_all(dir);
    return dir;
  }

  TrainingRecipe recipe_;
  std::shared_ptr<CausalLm> base_;
  std::shared_ptr<FrozenModel> frozen_;
  std::vector<TrainingSample> samples_;
};

TEST_F(Training, ResumedRunsGiveTheNumbersOfAnUnbrokenOne) {
  const auto whole_dir = fresh("kvlab_train_whole");
  Recorder whole;
  const TrainingOutcome outcome = run(whole_dir, whole).value();
  EXPECT_EQ(outcome.steps, 8);
  EXPECT_LT(whole.held_out.back(), whole.held_out.front());

  const auto parts_dir = fresh("kvlab_train_parts");
  Recorder first;
  first.stop_after = 4;  // ends in the middle, after the checkpoint of step 3
  EXPECT_FALSE(run(parts_dir, first).ok());
  Recorder second;
  ASSERT_TRUE(run(parts_dir, second).ok());
  EXPECT_EQ(second.started_at, 3);
  EXPECT_EQ(second.total, 8);
  std::vector<double> joined(first.losses.begin(), first.losses.begin() + 3);
  joined.insert(joined.end(), second.losses.begin(), second.losses.end());
  EXPECT_EQ(joined, whole.losses);
  EXPECT_EQ(read_file(parts_dir / "adapter.safetensors").value(),
            read_file(whole_dir / "adapter.safetensors").value());
}

TEST_F(Training, KeptPassesGiveTheSameNumbers) {
  const auto kept_dir = fresh("kvlab_train_passes");
  Recorder without;
  ASSERT_TRUE(run(fresh("kvlab_train_without"), without).ok());
  Recorder first;
  ASSERT_TRUE(run(fresh("kvlab_train_keeping"), first, kept_dir).ok());
  EXPECT_EQ(first.losses, without.losses);
  // A second run only reads, and mends what a crash or a full disk left behind.
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kept_dir)) {
    if (files++ == 3) {
      std::filesystem::resize_file(entry.path(), 100);
    }
  }
  EXPECT_EQ(files, 10);
  Recorder second;
  ASSERT_TRUE(run(fresh("kvlab_train_kept"), second, kept_dir).ok());
  EXPECT_EQ(second.losses, without.losses);
  EXPECT_EQ(second.held_out, without.held_out);
}

TEST_F(Training, ASecondStageNamesTheFirstAndMustHaveItsShape) {
  const auto first_dir = fresh("kvlab_train_stage_1");
  Recorder first;
  ASSERT_TRUE(run(first_dir, first).ok());
  recipe_.start_from = first_dir / "adapter.safetensors";
  recipe_.hash = "second";
  const auto second_dir = fresh("kvlab_train_stage_2");
  Recorder second;
  ASSERT_TRUE(run(second_dir, second).ok());
  EXPECT_LT(second.held_out.front(), first.held_out.front());
  const auto load = [&](const std::filesystem::path& dir) {
    return LookaheadAdapter::load(dir / "adapter.safetensors", frozen_->config, {}).value();
  };
  const auto metadata = load(second_dir)->metadata();
  EXPECT_EQ(metadata.at("start_from_hash"), load(first_dir)->content_hash());
  EXPECT_THAT(metadata.at("start_from"), ::testing::HasSubstr(R"("recipe_hash":"recipe")"));

  recipe_.shape.rank = 2;
  Recorder third;
  EXPECT_THAT(message_of(run(fresh("kvlab_train_stage_3"), third).status()),
              ::testing::AllOf(::testing::HasSubstr("rank 2"), ::testing::HasSubstr("start_from")));
}

TEST_F(Training, ACheckpointOfAnotherRecipeIsRefused) {
  const auto dir = fresh("kvlab_train_other");
  Recorder first;
  ASSERT_TRUE(run(dir, first).ok());
  recipe_.hash = "another";
  Recorder second;
  EXPECT_THAT(message_of(run(dir, second).status()), ::testing::HasSubstr("another recipe"));
}

TEST_F(Training, TheLogHoldsStepsAndEvaluations) {
  const auto path = fresh("kvlab_train_log") / "training.sqlite";
  ASSERT_TRUE(write_file(path.parent_path() / "x", "").ok());
  const auto log = TrainingLog::open(path).value();
  ASSERT_TRUE(log->write(TrainingStep{.step = 1, .loss = 0.5}).ok());
  ASSERT_TRUE(log->write(HeldOutEvaluation{.step = 1, .loss = 0.4, .recall = {{64, 0.9}}}).ok());
  const Json chart = training_chart(path).value();
  EXPECT_EQ(chart.at("vconcat").at(0).at("data").at("values").size(), 2U);
}

}  // namespace
}  // namespace kvlab
