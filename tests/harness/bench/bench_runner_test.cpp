// The runner on a tiny model: what it counts is exact; what it times is not looked at.
#include "harness/bench/bench_runner.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "harness/base/status.h"
#include "harness/bench/tensor_memory.h"
#include "harness/generation/layer_eviction.h"
#include "methods/registry.h"
#include "reports/bench_tables.h"
#include "reports/growth.h"
#include "results/store.h"
#include "tests/harness/model/golden_file.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kNewTokens = 9;

BenchConfig tiny_config() {
  BenchConfig config;
  config.path = "test";
  config.model_dir = golden_dir() / "models" / "tiny-gqa";
  config.model = ModelConfig::load(config.model_dir).value();
  config.dtype = "float32";
  config.methods = {{"full", "", Json::object()},
                    {"streaming_llm", "", Json::object()},
                    {"lookahead_kv", "", {{"adapter", "random"}}},
                    {"laq", "drafts", {{"draft_tokens", 4}}}};
  config.budgets = {48};
  config.lengths = {160, 200};
  config.arms = {1, 3};
  config.forms = {BenchForm::kByLayers, BenchForm::kShared};
  config.new_tokens = kNewTokens;
  config.repetitions = 2;
  config.warmup = 1;
  return config;
}

Device some_device() { return find_device("h100").value(); }

class Collector final : public BenchObserver {
 public:
  absl::Status on_measurement(const BenchRecord& record) override {
    records.push_back(record);
    return absl::OkStatus();
  }
  void on_progress(int64_t done, int64_t total, const std::string&) override {
    last_done = done;
    last_total = total;
  }
  bool keep_going() override { return static_cast<int64_t>(records.size()) < limit; }

  std::vector<BenchRecord> records;
  int64_t last_done = 0;
  int64_t last_total = 0;
  int64_t limit = 1 << 20;
};

TEST(TensorMemory, CountsTensorsMadeAndReleased) {
  const at::Tensor before = at::empty({1000}, at::kFloat);
  TensorMemory memory;
  {
    const at::Tensor a = at::empty({256}, at::kFloat);
    EXPECT_EQ(memory.bytes(), 1024);
    const at::Tensor b = at::empty({512}, at::kFloat);
    EXPECT_EQ(memory.bytes(), 3072);
    const at::Tensor alias = b.narrow(0, 5, 3);
    EXPECT_EQ(memory.bytes(), 3072);
  }
  EXPECT_EQ(memory.bytes(), 0);
  EXPECT_EQ(memory.peak(), 3072);
  memory.restart_peak();
  EXPECT_EQ(memory.peak(), 0);
}

TEST(BenchRunner, MeasuresEveryCellInEveryRoundInAnotherOrder) {
  const auto runner = BenchRunner::make(tiny_config(), some_device());
  ASSERT_TRUE(runner.ok()) << runner.status();
  // full, streaming_llm and lookahead_kv: by layers, shared, 3 arms shared; laq: shared, 1 and 3
  // arms. For two lengths.
  EXPECT_EQ((*runner)->cells().size(), 2U * (3 + 3 + 3 + 2));
  Collector collector;
  ASSERT_TRUE((*runner)->run(collector).ok());
  ASSERT_EQ(collector.records.size(), 2 * (*runner)->cells().size());
  EXPECT_EQ(collector.last_done, collector.last_total);
  std::vector<std::string> orders(2);
  for (const BenchRecord& record : collector.records) {
    const BenchMeasurement& m = record.measurement;
    ASSERT_EQ(m.status, CellStatus::kOk) << record.method.label << ": " << m.reason;
    EXPECT_GT(m.prefill_s, 0);
    EXPECT_GE(m.first_token_s, m.prefill_s);
    EXPECT_GT(m.decode_step_s, 0);
    EXPECT_GT(m.prefill_flops, 0);
    EXPECT_GT(m.peak_bytes, m.cache_bytes);
    EXPECT_GE(m.peak_bytes, m.prefill_peak_bytes);
    EXPECT_TRUE(m.state.contains("threads"));
    EXPECT_EQ(m.draft_s > 0, record.method.label == "drafts");
    orders[static_cast<size_t>(m.repetition)] +=
        fmt::format("{} {} {} {};", record.method.label, m.prompt_tokens, m.form, m.arms);
  }
  EXPECT_NE(orders[0], orders[1]);
}

TEST(BenchRunner, WithoutADeviceItMeasuresAndCountsButPredictsNothing) {
  const auto runner = BenchRunner::make(tiny_config(), std::nullopt).value();
  const BenchMeasurement m = runner->measure(runner->cells().back());
  ASSERT_EQ(m.status, CellStatus::kOk) << m.reason;
  EXPECT_GT(m.first_token_s, 0);
  EXPECT_GT(m.prefill_flops, 0);
  EXPECT_EQ(m.predicted_prefill_s, 0);
  EXPECT_EQ(m.predicted_eviction_s, 0);
  EXPECT_EQ(m.predicted_decode_step_s, 0);
}

TEST(BenchRunner, CountsCachesExactly) {
  const auto runner = BenchRunner::make(tiny_config(), some_device()).value();
  const ModelConfig config = tiny_config().model;
  const int64_t entry = 2 * config.num_layers * config.num_kv_heads * config.head_dim * 4;
  for (const BenchCell& cell : runner->cells()) {
    const BenchMeasurement m = runner->measure(cell);
    EXPECT_EQ(m.cache_bytes, ((cell.takes_budget ? 48 : cell.length) + kNewTokens) * entry);
    // While decoding, nothing of the prompt is left but the arms' caches.
    const int64_t prompt = cell.takes_budget ? cell.arms * 48 : cell.length;
    const int64_t caches = (prompt + cell.arms * kNewTokens) * entry;
    EXPECT_GE(m.steady_bytes, caches);
    EXPECT_LT(m.steady_bytes, caches + (256 << 10)) << cell.method.label;
  }
}

// Eviction inside prefill holds one layer in full: the difference to evicting afterwards is the
// other layers' keys and values, less what the wider activations take.
TEST(BenchRunner, EvictionInsidePrefillNeedsLessMemory) {
  BenchConfig config = tiny_config();
  config.random_weights = true;
  config.model.num_layers = 12;
  config.model.max_positions = 5000;
  config.methods = {{"streaming_llm", "", Json::object()}};
  config.lengths = {4096};
  config.arms = {1};
  config.prefill_chunk = 512;
  const auto runner = BenchRunner::make(config, some_device()).value();
  ASSERT_EQ(runner->cells().size(), 2U);
  const BenchMeasurement inside = runner->measure(runner->cells()[0]);
  const BenchMeasurement after = runner->measure(runner->cells()[1]);
  ASSERT_EQ(inside.form, "by_layers");
  ASSERT_EQ(after.form, "shared");
  const int64_t layer =
      2 * 4096 * config.model.num_kv_heads * config.model.head_dim * int64_t{sizeof(float)};
  const int64_t activations = 4096 * config.model.hidden_size * int64_t{sizeof(float)};
  EXPECT_LT(inside.peak_bytes, after.peak_bytes - 11 * layer + 2 * activations);
  EXPECT_EQ(inside.cache_bytes, after.cache_bytes);
}

TEST(BenchRunner, AFailureIsARowWithItsReason) {
  BenchConfig config = tiny_config();
  config.methods = {{"speckv", "", {{"draft_model", "/nowhere"}}}};
  EXPECT_FALSE(BenchRunner::make(config, some_device()).ok());
  config.methods = {{"snapkv", "", {{"window", 64}}}};  // more than the budget holds
  const auto runner = BenchRunner::make(config, some_device());
  ASSERT_TRUE(runner.ok()) << runner.status();
  const BenchMeasurement m = (*runner)->measure((*runner)->cells().front());
  EXPECT_EQ(m.status, CellStatus::kFailed);
  EXPECT_THAT(m.reason, HasSubstr("budget"));
}

TEST(BenchRunner, StopsWhenAsked) {
  const auto runner = BenchRunner::make(tiny_config(), some_device()).value();
  Collector collector;
  collector.limit = 3;
  EXPECT_TRUE(absl::IsCancelled(runner->run(collector)));
  EXPECT_EQ(collector.records.size(), 3U);
}

TEST(BenchData, ComesBackFromTheDatabaseAndIntoTables) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "bench.sqlite";
  const auto runner = BenchRunner::make(tiny_config(), some_device()).value();
  Collector collector;
  ASSERT_TRUE(runner->run(collector).ok());
  {
    const auto store = ResultStore::open(path, ResultStore::Mode::kCreate).value();
    ASSERT_TRUE(store->begin_run(test_run()).ok());
    for (const BenchRecord& record : collector.records) {
      ASSERT_TRUE(store->write_bench(record).ok());
    }
    ASSERT_TRUE(store->finish_run("done").ok());
  }
  const auto store = ResultStore::open(path, ResultStore::Mode::kRead).value();
  const BenchData data = load_bench(store->database()).value();
  ASSERT_EQ(data.rows.size(), collector.records.size());
  ASSERT_EQ(data.runs.size(), 1U);
  for (size_t i = 0; i < data.rows.size(); ++i) {
    const BenchMeasurement& written = collector.records[i].measurement;
    const BenchMeasurement& read = data.rows[i].measurement;
    EXPECT_EQ(data.rows[i].method, collector.records[i].method.label);
    EXPECT_EQ(read.budget, written.budget);
    EXPECT_EQ(read.form, written.form);
    EXPECT_EQ(read.prefill_s, written.prefill_s);
    EXPECT_EQ(read.decode_step_s, written.decode_step_s);
    EXPECT_EQ(read.weight_bytes, written.weight_bytes);
    EXPECT_EQ(read.predicted_peak_bytes, written.predicted_peak_bytes);
    EXPECT_EQ(read.others_busy, written.others_busy);
    EXPECT_EQ(read.state, written.state);
  }
  const std::vector<Table> tables = bench_tables(data);
  EXPECT_EQ(tables.size(), 2U * 2 * 2);  // two lengths, two numbers of arms, two tables
  for (const Table& table : tables) {
    for (const TableRow& row : table.rows) {
      EXPECT_EQ(row.cells.size(), table.columns.size());
    }
  }
  EXPECT_FALSE(growth_tables(data).empty());
  EXPECT_FALSE(growth_charts(data).empty());
}

// Rows of the full cache whose prefill grows as size^power.
void add_rows(const std::string& dtype, const std::string& device, double power, BenchData& data) {
  for (const int64_t length : {1024, 2048, 4096, 8192}) {
    for (const int64_t repetition : {0, 1, 2}) {
      StoredBench row;
      row.run = 1;
      row.model = "m";
      row.dtype = dtype;
      row.device = device;
      row.method = "full";
      row.measurement.prompt_tokens = length;
      row.measurement.repetition = repetition;
      const auto n = static_cast<double>(length);
      // The last one is an outlier.
      row.measurement.prefill_s = 1e-8 * std::pow(n, power) * (repetition == 2 ? 50 : 1);
      row.measurement.predicted_prefill_s = 1e-5 * n;
      row.measurement.decode_step_s = 0.01;
      row.measurement.peak_bytes = 100 * length;
      data.rows.push_back(row);
    }
  }
}

// Points on a known curve give its exponent.
TEST(Growth, FitsTheExponent) {
  BenchData data;
  add_rows("float32", "cpu", 2, data);
  const std::vector<Table> tables = growth_tables(data);
  ASSERT_EQ(tables.size(), 1U);
  const std::vector<TableCell>& cells = tables.front().rows.front().cells;
  EXPECT_NEAR(*cells[0].value, 2, 1e-9);     // prefill measured
  EXPECT_NEAR(*cells[1].value, 1, 1e-9);     // predicted
  EXPECT_NEAR(*cells[2].value, 2, 1e-9);     // between the last two
  EXPECT_FALSE(cells[4].value.has_value());  // nothing evicted
  EXPECT_EQ(cells[4].text, kMissing);
  EXPECT_NEAR(*cells[8].value, 0, 1e-9);  // a step takes the same
  EXPECT_NEAR(*cells[12].value, 1, 1e-9);
}

TEST(Growth, NeverMixesDevicesOrDtypes) {
  BenchData data;
  add_rows("bfloat16", "cpu", 2, data);
  add_rows("bfloat16", "cuda", 1, data);
  add_rows("float32", "cpu", 1.5, data);
  const std::vector<Table> tables = growth_tables(data);
  ASSERT_EQ(tables.size(), 3U);
  std::vector<std::string> titles;
  std::vector<double> exponents;
  for (const Table& table : tables) {
    titles.push_back(table.title);
    ASSERT_EQ(table.rows.size(), 1U);
    exponents.push_back(*table.rows.front().cells.front().value);
  }
  EXPECT_THAT(titles, ElementsAre(HasSubstr("m (bfloat16, cpu)"), HasSubstr("m (bfloat16, cuda)"),
                                  HasSubstr("m (float32, cpu)")));
  EXPECT_THAT(exponents,
              ElementsAre(DoubleNear(2, 1e-9), DoubleNear(1, 1e-9), DoubleNear(1.5, 1e-9)));
  std::set<std::string> names;
  for (const Chart& chart : growth_charts(data)) {
    EXPECT_TRUE(names.insert(chart.name).second) << chart.name;
    EXPECT_EQ(chart.spec["data"]["values"].size(), 4U) << chart.title;  // one line
  }
  EXPECT_EQ(names.size(), 3U * 3);  // prefill, decode step and peak memory
}

// Two prompt lengths at several arms are two lines of one chart.
TEST(Growth, ChartsOverArmsNameTheLength) {
  BenchData data;
  add_rows("float32", "cpu", 1, data);
  const std::vector<StoredBench> one_arm = data.rows;
  for (StoredBench row : one_arm) {
    row.measurement.arms = 4;
    data.rows.push_back(row);
  }
  for (const Chart& chart : growth_charts(data)) {
    if (chart.name == "growth_decode_step_arms_1") {
      std::set<std::string> series;
      for (const Json& value : chart.spec["data"]["values"]) {
        series.insert(value["series"].get<std::string>());
      }
      EXPECT_EQ(series.size(), 4U) << Json(series);
      return;
    }
  }
  ADD_FAILURE() << "no chart of decode steps over arms";
}

TEST(BenchTables, SayTheDtypeAndDeviceOfTheirOwnRows) {
  BenchData data;
  add_rows("float32", "cpu", 1, data);
  add_rows("bfloat16", "cuda", 1, data);
  const std::vector<Table> tables = bench_tables(data);
  ASSERT_EQ(tables.size(), 2U * 4 * 2);
  std::set<std::string> titles;
  for (const Table& table : tables) {
    titles.insert(table.title);
    ASSERT_EQ(table.rows.size(), 1U);
    EXPECT_EQ(table.rows.front().headers.back(), "3") << table.title;  // repetitions
  }
  EXPECT_EQ(titles.size(), tables.size());
  EXPECT_THAT(tables.front().title, HasSubstr("m (bfloat16, cuda)"));
  EXPECT_THAT(tables.back().title, HasSubstr("m (float32, cpu)"));
}

TEST(BenchRunner, PredictsDraftsByTheirLengthAndTheirModel) {
  BenchConfig config = tiny_config();
  config.methods = {{"oracle", "", Json::object()},
                    {"speckv", "whole", {{"draft_tokens", 0}}},
                    {"speckv", "other", {{"draft_model", config.model_dir.string()}}},
                    {"laq", "", Json::object()},
                    {"laq", "staged", {{"first_stage", "streaming_llm"}}}};
  config.lengths = {160};
  config.arms = {1};
  config.forms = {BenchForm::kShared};
  const auto runner = BenchRunner::make(config, some_device());
  ASSERT_TRUE(runner.ok()) << runner.status();
  const std::vector<BenchCell>& cells = (*runner)->cells();
  ASSERT_EQ(cells.size(), 5U);
  EXPECT_EQ(cells[0].cost->draft_tokens, kNewTokens);
  EXPECT_EQ(cells[1].cost->draft_tokens, kNewTokens);
  EXPECT_EQ(cells[2].cost->draft, MethodCost::Draft::kOtherModel);
  EXPECT_EQ(cells[2].cost->draft_model.num_layers, config.model.num_layers);
  EXPECT_TRUE(cells[3].cost.has_value());
  EXPECT_FALSE(cells[4].cost.has_value());
  EXPECT_EQ((*runner)->measure(cells[4]).predicted_eviction_s, 0);
}

// An unknown one would be measured without a prediction beside it.
TEST(BenchMethods, TheCostModelKnowsAllThatShip) {
  const CostModel model(tiny_config().model, find_device("h100").value());
  for (const MethodInfo& info : list_methods()) {
    const auto cost = method_cost(info.name, {{"window", 32}, {"draft_tokens", 32}},
                                  {.adapter_tokens = 32, .adapter_rank = 8, .new_tokens = 32});
    ASSERT_TRUE(cost.ok()) << cost.status();
    EXPECT_GE(model.eviction(*cost, 8192, 128).total().seconds, 0) << info.name;
  }
}

}  // namespace
}  // namespace kvlab
