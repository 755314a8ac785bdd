#include "benchmarks/longbench/longbench_benchmark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "benchmarks/longbench/protocol.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

using testing::HasSubstr;

const LongBenchBenchmark& benchmark() {
  static const LongBenchBenchmark instance;
  return instance;
}

class LongBench : public testing::Test {
 protected:
  void SetUp() override {
    KVLAB_SHARED_DATA_OR_SKIP(shared);
    folder_ = (shared / "longbench").string();
    tokenizer_ = Tokenizer::load(shared / "model_configs" / "SmolLM2-135M-Instruct").value();
    llama_dir_ = shared / "model_configs" / "Llama-3.1-8B-Instruct";
  }

  absl::StatusOr<std::vector<Sample>> load(Json params) {
    params["folder"] = folder_;
    return benchmark().load_samples(params, *tokenizer_, PromptFormat());
  }
  Sample first(Json params) { return load(std::move(params)).value().at(0); }
  std::string error(Json params) { return std::string(load(std::move(params)).status().message()); }

  std::string folder_;
  std::filesystem::path llama_dir_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(LongBench, LoadsEveryRecordOfAllTasksUnderUniqueKeys) {
  const auto samples = load({});
  ASSERT_TRUE(samples.ok()) << samples.status();
  std::set<std::string> keys;
  std::set<std::string> tasks;
  std::set<std::string> datasets;
  for (const Sample& sample : *samples) {
    keys.insert(sample.key);
    tasks.insert(sample.task);
    datasets.insert(sample.dataset);
    EXPECT_LT(sample.question_begin, sample.prompt.size()) << sample.key;
    EXPECT_FALSE(sample.references.empty());
  }
  EXPECT_EQ(keys.size(), samples->size());
  EXPECT_EQ(tasks.size(), 21U);
  EXPECT_EQ(datasets.size(), 21U);
  EXPECT_EQ(load({{"e", true}}).value().back().task, "repobench-p_e");
}

TEST_F(LongBench, GroupsAndCountsSelect) {
  const auto english = load({{"tasks", {"english"}}, {"samples", 2}}).value();
  EXPECT_EQ(english.size(), 32U);  // 16 tasks
  EXPECT_EQ(load({{"tasks", "chinese"}, {"samples", 1}}).value().size(), 5U);
  EXPECT_EQ(load({{"tasks", "all"}, {"e", true}, {"samples", 1}}).value().size(), 13U);
}

TEST_F(LongBench, OfficialProtocolOfATemplatedAndAFewShotTask) {
  const Sample qa = first({{"tasks", "hotpotqa"}});
  EXPECT_TRUE(qa.chat_template);
  EXPECT_TRUE(qa.prompt.ends_with("\nAnswer:"));
  EXPECT_TRUE(qa.prompt.substr(qa.question_begin).starts_with("Question: "));
  EXPECT_EQ(qa.answer_prefix, "");
  EXPECT_EQ(qa.max_new_tokens, 32);
  EXPECT_EQ(qa.min_new_tokens, 0);
  EXPECT_EQ(qa.truncation, Truncation::kMiddle);
  EXPECT_EQ(qa.max_prompt_tokens, 31500);
  EXPECT_TRUE(qa.stop_texts.empty());
  const Sample samsum = first({{"tasks", "samsum"}});
  EXPECT_FALSE(samsum.chat_template);
  EXPECT_EQ(samsum.min_new_tokens, 1);
  EXPECT_THAT(samsum.stop_texts, testing::ElementsAre("\n"));
  EXPECT_EQ(samsum.extra["scoring"]["first_line"], "after-newlines");
  EXPECT_EQ(qa.extra["scoring"]["first_line"], "none");
}

TEST_F(LongBench, KvpressProtocolMovesTheCueBehindTheHeader) {
  const Sample qa = first({{"tasks", "hotpotqa"}, {"protocol", "kvpress"}});
  EXPECT_EQ(qa.answer_prefix, "Answer:");
  EXPECT_FALSE(qa.prompt.ends_with("Answer:"));
  EXPECT_EQ(qa.max_new_tokens, 52);
  EXPECT_EQ(qa.truncation, Truncation::kTail);
  EXPECT_TRUE(qa.tokenise_in_parts);
  const Sample trec = first({{"tasks", "trec"}, {"protocol", "kvpress"}});
  EXPECT_EQ(trec.answer_prefix, "Type:");
  EXPECT_TRUE(trec.chat_template);
  EXPECT_FALSE(trec.prompt.ends_with("Type:"));
}

TEST_F(LongBench, KvcacheFactoryWrapsLlama3Only) {
  const Json params = {{"tasks", "hotpotqa"}, {"protocol", "kvcache-factory"}};
  EXPECT_FALSE(first(params).chat_template);
  EXPECT_EQ(first(params).min_new_tokens, 1);
  tokenizer_ = Tokenizer::load(llama_dir_).value();
  EXPECT_TRUE(first(params).chat_template);
}

TEST_F(LongBench, ScoresAReplyFromTheSampleAlone) {
  const Sample sample = first({{"tasks", "samsum"}});
  const Score score =
      benchmark().score(sample, "\n" + sample.references[0] + "\nDialogue: more").value();
  EXPECT_EQ(score.metric, "ROUGE-L");
  EXPECT_GT(score.value, 99.9);
  const Sample trec = first({{"tasks", "trec"}, {"e", true}});
  EXPECT_EQ(benchmark().score(trec, trec.references[0]).value().value, 100);
}

TEST_F(LongBench, BadParametersNameTheKeyAndTheChoices) {
  EXPECT_THAT(error({{"taks", "trec"}}), testing::AllOf(HasSubstr("\"taks\""), HasSubstr("tasks")));
  EXPECT_THAT(error({{"tasks", "squad"}}),
              testing::AllOf(HasSubstr("squad"), HasSubstr("english")));
  EXPECT_THAT(error({{"tasks", "musique"}, {"e", true}}), HasSubstr("LongBench-E has no musique"));
  EXPECT_THAT(error({{"tasks", 3}}), HasSubstr("\"tasks\" must hold names"));
  EXPECT_THAT(error({{"samples", -1}}), HasSubstr("\"samples\" is -1"));
  EXPECT_THAT(error({{"protocol", "x"}}), HasSubstr("longbench-official, kvpress"));
  EXPECT_THAT(error({{"bos", "two"}}), HasSubstr("valid: one, official-double"));
  EXPECT_THAT(error({{"max_prompt_tokens", "7500"}}), HasSubstr("expected an integer"));
  EXPECT_THAT(error({{"max_prompt_tokens", 1}}), HasSubstr("at least 2"));
  folder_ += "/nowhere";
  EXPECT_THAT(error({}), HasSubstr("no such folder"));
}

TEST(LongBenchProtocols, EveryFieldIsStoredAndOverridable) {
  const Json official = benchmark().resolve_protocol({{"folder", "x"}}).value();
  EXPECT_EQ(official["name"], "longbench-official");
  for (const auto& [key, value] : official.items()) {
    if (key == "name") {
      continue;
    }
    Json changed = value;
    if (value.is_boolean()) {
      changed = !value.get<bool>();
    } else if (value.is_number()) {
      changed = value.get<int64_t>() + 2;
    } else {
      changed = "no such choice";
    }
    const auto resolved = benchmark().resolve_protocol({{key, changed}});
    if (value.is_string()) {
      EXPECT_THAT(std::string(resolved.status().message()), HasSubstr(key));
    } else {
      EXPECT_EQ(resolved.value()[key], changed);
    }
  }
}

TEST(LongBenchProtocols, TheNamedOnesDiffer) {
  std::set<std::string> seen;
  for (const std::string& name : longbench_protocol_names()) {
    seen.insert(benchmark().resolve_protocol({{"protocol", name}}).value().dump());
  }
  EXPECT_EQ(seen.size(), 3U);
}

}  // namespace
}  // namespace kvlab
