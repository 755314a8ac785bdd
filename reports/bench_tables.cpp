#include "reports/bench_tables.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "reports/bench_rows.h"
#include "reports/statistics.h"
#include "results/score_data.h"

namespace kvlab {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

// Rows in the order of methods as stored, then budget.
struct Group {
  std::vector<BenchRowKey> order;
  std::map<BenchRowKey, std::vector<const BenchMeasurement*>> rows;
  // By form and repetition. By layers, keeping all entries is a copy of the cache that belongs to
  // no full cache's time.
  std::map<std::pair<std::string, int64_t>, double> full_first_token_s;

  void add(const StoredBench& row) {
    const BenchMeasurement& m = row.measurement;
    const BenchRowKey key{row.method, m.budget, m.form};
    auto& values = rows[key];
    if (values.empty()) {
      order.push_back(key);
    }
    values.push_back(&m);
    if (m.budget == "full" && m.status == CellStatus::kOk) {
      const double copied_s = m.form == "by_layers" ? m.choose_s + m.compact_s : 0;
      full_first_token_s[{m.form, m.repetition}] = m.first_token_s - copied_s;
    }
  }
  void sort() {
    std::stable_sort(order.begin(), order.end(), [](const BenchRowKey& a, const BenchRowKey& b) {
      return a.budget != b.budget ? budget_before(a.budget, b.budget) : false;
    });
  }
};

using Values = std::vector<double>;

Values values_of(const std::vector<const BenchMeasurement*>& rows,
                 const std::function<std::optional<double>(const BenchMeasurement&)>& value) {
  Values values;
  for (const BenchMeasurement* row : rows) {
    if (row->status == CellStatus::kOk) {
      if (const std::optional<double> found = value(*row)) {
        values.push_back(*found);
      }
    }
  }
  return values;
}

TableCell median_cell(Values values, int digits, bool with_interval) {
  TableCell cell;
  if (values.empty()) {
    cell.text = kMissing;
    return cell;
  }
  const Estimate median = median_interval(std::move(values));
  cell.value = median.mean;
  cell.low = median.low;
  cell.high = median.high;
  cell.count = cell.expected = median.count;
  cell.text = fmt::format("{:.{}f}", median.mean, digits);
  if (with_interval && median.low && median.high) {
    cell.text += fmt::format(" ({:.{}f} to {:.{}f})", *median.low, digits, *median.high, digits);
  }
  return cell;
}

struct Column {
  const char* name;
  const char* unit;
  int digits;
  bool interval;
  std::function<std::optional<double>(const BenchMeasurement&, const Group&)> value;
};

std::optional<double> full_of(const BenchMeasurement& m, const Group& group) {
  auto found = group.full_first_token_s.find({m.form, m.repetition});
  if (found == group.full_first_token_s.end()) {
    found = group.full_first_token_s.find({"shared", m.repetition});
  }
  return found == group.full_first_token_s.end() || m.budget == "full"
             ? std::nullopt
             : std::optional<double>(found->second);
}

const std::vector<Column>& cost_columns() {
  using M = BenchMeasurement;
  using G = Group;
  static const auto* const columns = new std::vector<Column>{
      {"prefill", "s", 3, true, [](const M& m, const G&) { return m.prefill_s; }},
      {"rows or draft", "ms", 2, false,
       [](const M& m, const G&) { return 1e3 * (m.query_s + m.draft_s); }},
      {"scores", "ms", 2, false, [](const M& m, const G&) { return 1e3 * m.score_s; }},
      {"eviction", "ms", 2, false,
       [](const M& m, const G&) { return 1e3 * (m.choose_s + m.compact_s); }},
      {"first token", "s", 3, true, [](const M& m, const G&) { return m.first_token_s; }},
      {"overhead", "ms", 1, true,
       [](const M& m, const G& group) -> std::optional<double> {
         const auto full = full_of(m, group);
         return full ? std::optional(1e3 * (m.first_token_s - *full)) : std::nullopt;
       }},
      {"overhead", "%", 2, true,
       [](const M& m, const G& group) -> std::optional<double> {
         const auto full = full_of(m, group);
         return full ? std::optional(100 * (m.first_token_s / *full - 1)) : std::nullopt;
       }},
      {"decode", "ms a step", 2, true, [](const M& m, const G&) { return 1e3 * m.decode_step_s; }},
      {"prefill peak", "MiB", 1, false,
       [](const M& m, const G&) { return static_cast<double>(m.prefill_peak_bytes) / kMiB; }},
      {"peak", "MiB", 1, false,
       [](const M& m, const G&) { return static_cast<double>(m.peak_bytes) / kMiB; }},
      {"steady", "MiB", 1, false,
       [](const M& m, const G&) { return static_cast<double>(m.steady_bytes) / kMiB; }},
      {"cache", "MiB an arm", 2, false,
       [](const M& m, const G&) { return static_cast<double>(m.cache_bytes) / kMiB; }},
      {"resident peak", "MiB", 0, false,
       [](const M& m, const G&) { return static_cast<double>(m.resident_peak_bytes) / kMiB; }},
  };
  return *columns;
}

// Nothing of methods whose arithmetic the cost model does not know; a known one has a peak.
std::optional<double> if_known(const BenchMeasurement& m, double value) {
  return m.predicted_peak_bytes > 0 ? std::optional(value) : std::nullopt;
}

const std::vector<Column>& prediction_columns() {
  using M = BenchMeasurement;
  using G = Group;
  static const auto* const columns = new std::vector<Column>{
      {"prefill", "TFLOP", 3, false, [](const M& m, const G&) { return m.prefill_flops / 1e12; }},
      {"prefill", "GFLOP/s", 0, false,
       [](const M& m, const G&) { return m.prefill_flops / m.prefill_s / 1e9; }},
      {"prefill", "s", 3, false, [](const M& m, const G&) { return m.prefill_s; }},
      {"prefill predicted", "s", 3, false,
       [](const M& m, const G&) { return m.predicted_prefill_s; }},
      {"eviction", "GFLOP", 2, false,
       [](const M& m, const G&) { return if_known(m, m.eviction_flops / 1e9); }},
      {"eviction", "MB moved", 1, false,
       [](const M& m, const G&) { return if_known(m, m.eviction_bytes / 1e6); }},
      {"overhead", "ms", 1, false,
       [](const M& m, const G& group) -> std::optional<double> {
         const auto full = full_of(m, group);
         return full ? std::optional(1e3 * (m.first_token_s - *full)) : std::nullopt;
       }},
      {"overhead predicted", "ms", 1, false,
       [](const M& m, const G&) { return if_known(m, 1e3 * m.predicted_eviction_s); }},
      {"decode", "MB moved", 1, false, [](const M& m, const G&) { return m.decode_bytes / 1e6; }},
      {"decode", "GB/s", 1, false,
       [](const M& m, const G&) { return m.decode_bytes / m.decode_step_s / 1e9; }},
      {"decode", "ms a step", 2, false, [](const M& m, const G&) { return 1e3 * m.decode_step_s; }},
      {"decode predicted", "ms a step", 2, false,
       [](const M& m, const G&) { return 1e3 * m.predicted_decode_step_s; }},
      {"peak", "MiB", 1, false,
       [](const M& m, const G&) { return static_cast<double>(m.peak_bytes) / kMiB; }},
      {"peak predicted", "MiB", 1, false,
       [](const M& m, const G&) { return if_known(m, m.predicted_peak_bytes / kMiB); }},
  };
  return *columns;
}

Table make_table(const Group& group, const std::vector<Column>& columns) {
  Table table;
  table.row_headers = {"method", "budget", "evicted", "n"};
  for (const Column& column : columns) {
    table.columns.push_back({column.name, column.unit, fmt::format("median {}", column.unit)});
  }
  int line = 0;
  std::string last_budget;
  int64_t disturbed = 0;
  std::map<std::string, int64_t> failures;
  for (const BenchRowKey& key : group.order) {
    const auto& rows = group.rows.at(key);
    int64_t ok = 0;
    for (const BenchMeasurement* row : rows) {
      ok += row->status == CellStatus::kOk ? 1 : 0;
      disturbed += row->others_busy > kQuietProcessors ? 1 : 0;
      if (row->status != CellStatus::kOk) {
        ++failures[fmt::format("{} at {}: {}", key.method, key.budget, row->reason)];
      }
    }
    line += !last_budget.empty() && key.budget != last_budget ? 1 : 0;
    last_budget = key.budget;
    TableRow row;
    row.group = line;
    row.headers = {key.method, key.budget, key.evicted(), fmt::format("{}", ok)};
    for (const Column& column : columns) {
      row.cells.push_back(median_cell(
          values_of(rows, [&](const BenchMeasurement& m) { return column.value(m, group); }),
          column.digits, column.interval));
    }
    table.rows.push_back(std::move(row));
  }
  if (disturbed > 0) {
    table.notes.push_back(
        fmt::format("{} measurements while other processes kept more than {} processors busy",
                    disturbed, kQuietProcessors));
  }
  for (const auto& [what, count] : failures) {
    table.notes.push_back(fmt::format("{} failed: {}", count, what));
  }
  return table;
}

std::string machine_text(const BenchRun& run) {
  const Json device = run.machine.value("cost_model", Json::object());
  std::string text = fmt::format("{}, {} threads", run.machine.value("cpu", "unknown processor"),
                                 run.machine.value("threads", 0));
  if (!device.empty()) {
    text += fmt::format(
        "; predictions with {}: {:.0f} GFLOP/s x {}, {:.1f} GB/s x {}", device.value("device", ""),
        device.value("flops_per_s", 0.0) / 1e9, device.value("compute_efficiency", 0.0),
        device.value("bytes_per_s", 0.0) / 1e9, device.value("memory_efficiency", 0.0));
  }
  return text;
}

}  // namespace

std::vector<Table> bench_tables(const BenchData& data) {
  // Runs, settings, lengths, arms.
  std::map<std::tuple<int64_t, BenchSetting, int64_t, int64_t>, Group> groups;
  for (const StoredBench& row : data.rows) {
    groups[{row.run, bench_setting(row), row.measurement.prompt_tokens, row.measurement.arms}].add(
        row);
  }
  std::vector<Table> tables;
  for (auto& [key, group] : groups) {
    const auto& [run_id, setting, length, arms] = key;
    group.sort();
    const std::string what = fmt::format("{}, {} prompt tokens, {} arm{}, run {}", setting.text(),
                                         length, arms, arms == 1 ? "" : "s", run_id);
    const auto run = std::find_if(data.runs.begin(), data.runs.end(),
                                  [id = run_id](const BenchRun& r) { return r.id == id; });
    Table cost = make_table(group, cost_columns());
    cost.title = "measured cost, " + what;
    cost.attributes = setting.attributes();
    cost.attributes.emplace_back("length", fmt::format("{}", length));
    cost.attributes.emplace_back("arms", fmt::format("{}", arms));
    cost.attributes.emplace_back("run", fmt::format("{}", run_id));
    cost.caption =
        "Medians over repetitions, interleaved at random over methods, with 95 % intervals where "
        "there are enough. Inside prefill: each layer evicted as it is finished, learned rows in "
        "the prefill's time. Overhead: time to the first token beyond the full cache's of the same "
        "round and, if it was measured, the same order of layers. Memory: tensors beyond the "
        "weights; resident: the whole process";
    if (run != data.runs.end()) {
      cost.notes.push_back(machine_text(*run));
      cost.notes.push_back(fmt::format("started {}, commit {}", run->started,
                                       run->commit.empty() ? "unknown" : run->commit));
    }
    Table predicted = make_table(group, prediction_columns());
    predicted.title = "measured and predicted, " + what;
    predicted.attributes = cost.attributes;
    predicted.caption =
        "Operations and bytes by arithmetic from the model's shape; predictions from the device's "
        "peaks";
    if (run != data.runs.end()) {
      predicted.notes.push_back(machine_text(*run));
    }
    tables.push_back(std::move(cost));
    tables.push_back(std::move(predicted));
  }
  return tables;
}

}  // namespace kvlab
