#include "reports/bench_tables.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "harness/base/status.h"
#include "reports/statistics.h"

namespace kvlab {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kBusy = 0.2;  // processors of others from which a measurement is pointed out

// What a row of a table is.
struct RowKey {
  std::string method;
  std::string budget;
  std::string form;
  auto operator<=>(const RowKey&) const = default;
};

// Rows in the order of methods as stored, then budget.
struct Group {
  std::vector<RowKey> order;
  std::map<RowKey, std::vector<const BenchMeasurement*>> rows;
  std::map<int64_t, double> full_first_token_s;  // by repetition

  void add(const StoredBench& row) {
    const BenchMeasurement& m = row.measurement;
    const RowKey key{row.method, m.budget, m.form};
    auto& values = rows[key];
    if (values.empty()) {
      order.push_back(key);
    }
    values.push_back(&m);
    if (m.budget == "full" && m.status == CellStatus::kOk) {
      full_first_token_s[m.repetition] = m.first_token_s;
    }
  }
  void sort() {
    std::stable_sort(order.begin(), order.end(), [](const RowKey& a, const RowKey& b) {
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
    cell.text = "-";
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
  const auto found = group.full_first_token_s.find(m.repetition);
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

std::string form_text(const std::string& form) {
  return form == "by_layers" ? "inside prefill" : "after prefill";
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
  for (const RowKey& key : group.order) {
    const auto& rows = group.rows.at(key);
    int64_t ok = 0;
    for (const BenchMeasurement* row : rows) {
      ok += row->status == CellStatus::kOk ? 1 : 0;
      disturbed += row->others_busy > kBusy ? 1 : 0;
      if (row->status != CellStatus::kOk) {
        ++failures[fmt::format("{} at {}: {}", key.method, key.budget, row->reason)];
      }
    }
    line += !last_budget.empty() && key.budget != last_budget ? 1 : 0;
    last_budget = key.budget;
    TableRow row;
    row.group = line;
    row.headers = {key.method, key.budget, key.budget == "full" ? "nothing" : form_text(key.form),
                   fmt::format("{}", ok)};
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
                    disturbed, kBusy));
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

// Growth: one line of points (size, median measured, median predicted).
struct Point {
  double size = 0;
  double measured = 0;
  double predicted = 0;
};

struct Quantity {
  const char* name;
  const char* unit;
  std::function<double(const BenchMeasurement&)> measured;
  std::function<double(const BenchMeasurement&)> predicted;  // 0: none
};

const std::vector<Quantity>& quantities() {
  using M = BenchMeasurement;
  static const auto* const all = new std::vector<Quantity>{
      {"prefill", "s", [](const M& m) { return m.prefill_s; },
       [](const M& m) { return m.predicted_prefill_s; }},
      {"scores and eviction", "s",
       [](const M& m) { return m.query_s + m.draft_s + m.score_s + m.choose_s + m.compact_s; },
       [](const M& m) { return m.predicted_eviction_s; }},
      {"decode step", "s", [](const M& m) { return m.decode_step_s; },
       [](const M& m) { return m.predicted_decode_step_s; }},
      {"peak memory", "bytes", [](const M& m) { return static_cast<double>(m.peak_bytes); },
       [](const M& m) { return m.predicted_peak_bytes; }},
      {"steady memory", "bytes", [](const M& m) { return static_cast<double>(m.steady_bytes); },
       [](const M&) { return 0.0; }},
  };
  return *all;
}

struct GrowthKey {
  std::string model;
  std::string dtype;
  RowKey row;
  int64_t fixed = 0;  // arms, or prompt tokens
  auto operator<=>(const GrowthKey&) const = default;
};

// Medians by size; `over_arms`: size is the number of arms at a prompt length, else the prompt's
// length at one arm.
std::map<GrowthKey, std::vector<Point>> growth(const BenchData& data, const Quantity& quantity,
                                               bool over_arms) {
  std::map<GrowthKey, std::map<int64_t, std::pair<Values, Values>>> all;
  for (const StoredBench& row : data.rows) {
    const BenchMeasurement& m = row.measurement;
    if (m.status != CellStatus::kOk || (!over_arms && m.arms != 1)) {
      continue;
    }
    const GrowthKey key{row.model,
                        row.dtype,
                        {row.method, m.budget, over_arms ? "shared" : m.form},
                        over_arms ? m.prompt_tokens : 1};
    auto& point = all[key][over_arms ? m.arms : m.prompt_tokens];
    point.first.push_back(quantity.measured(m));
    point.second.push_back(quantity.predicted(m));
  }
  std::map<GrowthKey, std::vector<Point>> lines;
  for (auto& [key, sizes] : all) {
    std::vector<Point> points;
    for (auto& [size, values] : sizes) {
      points.push_back(
          {static_cast<double>(size), quantile(values.first, 0.5), quantile(values.second, 0.5)});
    }
    if (points.size() > 1) {
      lines[key] = std::move(points);
    }
  }
  return lines;
}

// Least squares in logarithms; none where a value is not positive.
std::optional<double> exponent(const std::vector<Point>& points, bool predicted) {
  Moments x;
  Moments y;
  for (const Point& point : points) {
    const double value = predicted ? point.predicted : point.measured;
    if (!(value > 0)) {
      return std::nullopt;
    }
    x.add(std::log(point.size));
    y.add(std::log(value));
  }
  double products = 0;
  double squares = 0;
  for (const Point& point : points) {
    const double dx = std::log(point.size) - x.mean();
    products += dx * (std::log(predicted ? point.predicted : point.measured) - y.mean());
    squares += dx * dx;
  }
  return squares > 0 ? std::optional(products / squares) : std::nullopt;
}

// The exponent between the last two points: where large sizes tend to.
std::optional<double> last_exponent(const std::vector<Point>& points, bool predicted) {
  return exponent({points.end() - 2, points.end()}, predicted);
}

TableCell exponent_cell(std::optional<double> value) {
  TableCell cell;
  cell.text = value ? fmt::format("{:.2f}", *value) : "-";
  cell.value = value;
  cell.count = cell.expected = 1;
  return cell;
}

std::string series_name(const GrowthKey& key) {
  return key.row.budget == "full"
             ? key.row.method
             : fmt::format("{} {}, {}", key.row.method, key.row.budget, form_text(key.row.form));
}

}  // namespace

std::vector<Table> bench_tables(const BenchData& data) {
  // Runs, models, lengths, arms.
  std::map<std::tuple<int64_t, std::string, int64_t, int64_t>, Group> groups;
  std::map<std::string, std::string> dtypes;
  for (const StoredBench& row : data.rows) {
    groups[{row.run, row.model, row.measurement.prompt_tokens, row.measurement.arms}].add(row);
    dtypes[row.model] = fmt::format("{}, {}", row.dtype, row.device);
  }
  std::vector<Table> tables;
  for (auto& [key, group] : groups) {
    const auto& [run_id, model, length, arms] = key;
    group.sort();
    const auto run = std::find_if(data.runs.begin(), data.runs.end(),
                                  [id = run_id](const BenchRun& r) { return r.id == id; });
    Table cost = make_table(group, cost_columns());
    cost.title = fmt::format("measured cost, {} ({}), {} prompt tokens, {} arm{}, run {}", model,
                             dtypes[model], length, arms, arms == 1 ? "" : "s", run_id);
    cost.attributes = {{"model", model},
                       {"length", fmt::format("{}", length)},
                       {"arms", fmt::format("{}", arms)},
                       {"run", fmt::format("{}", run_id)}};
    cost.caption =
        "Medians over repetitions, interleaved at random over methods, with 95 % intervals where "
        "there are enough. Inside prefill: each layer evicted as it is finished, learned rows in "
        "the prefill's time. Overhead: time to the first token beyond the full cache's of the same "
        "round. Memory: tensors beyond the weights; resident: the whole process";
    if (run != data.runs.end()) {
      cost.notes.push_back(machine_text(*run));
      cost.notes.push_back(fmt::format("started {}, commit {}", run->started,
                                       run->commit.empty() ? "unknown" : run->commit));
    }
    Table predicted = make_table(group, prediction_columns());
    predicted.title = fmt::format("measured and predicted, {}, {} prompt tokens, {} arm{}, run {}",
                                  model, length, arms, arms == 1 ? "" : "s", run_id);
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

std::vector<Table> growth_tables(const BenchData& data) {
  std::vector<Table> tables;
  for (const bool over_arms : {false, true}) {
    // model -> row -> quantity
    std::map<std::string, std::map<GrowthKey, std::map<std::string, std::vector<Point>>>> models;
    for (const Quantity& quantity : quantities()) {
      for (const auto& [key, points] : growth(data, quantity, over_arms)) {
        models[key.model][key][quantity.name] = points;
      }
    }
    for (const auto& [model, rows] : models) {
      Table table;
      table.title = fmt::format("growth with {}, {}", over_arms ? "arms" : "prompt tokens", model);
      table.attributes = {{"model", model}};
      table.caption =
          "Exponent p of size^p, least squares in logarithms over medians: measured, and of the "
          "prediction. Last: between the two largest sizes";
      table.row_headers = {"method", over_arms ? "prompt" : "sizes"};
      for (const Quantity& quantity : quantities()) {
        if (over_arms && std::string_view(quantity.name) == "prefill") {
          continue;
        }
        for (const char* which : {"measured", "predicted", "last", "last predicted"}) {
          table.columns.push_back({quantity.name, which, "exponent"});
        }
      }
      for (const auto& [key, by_quantity] : rows) {
        const std::vector<Point>& any = by_quantity.begin()->second;
        TableRow row;
        row.headers = {series_name(key),
                       over_arms
                           ? fmt::format("{}", key.fixed)
                           : fmt::format("{:.0f} to {:.0f}", any.front().size, any.back().size)};
        for (const Quantity& quantity : quantities()) {
          if (over_arms && std::string_view(quantity.name) == "prefill") {
            continue;
          }
          const std::vector<Point>& points = by_quantity.at(quantity.name);
          row.cells.push_back(exponent_cell(exponent(points, false)));
          row.cells.push_back(exponent_cell(exponent(points, true)));
          row.cells.push_back(exponent_cell(last_exponent(points, false)));
          row.cells.push_back(exponent_cell(last_exponent(points, true)));
        }
        table.rows.push_back(std::move(row));
      }
      tables.push_back(std::move(table));
    }
  }
  return tables;
}

std::vector<Chart> growth_charts(const BenchData& data) {
  std::vector<Chart> charts;
  for (const bool over_arms : {false, true}) {
    for (const Quantity& quantity : quantities()) {
      Json values = Json::array();
      for (const auto& [key, points] : growth(data, quantity, over_arms)) {
        for (const Point& point : points) {
          if (!(point.measured > 0)) {
            continue;
          }
          std::string series = series_name(key);
          if (const auto p = exponent(points, false)) {
            series += fmt::format(" (p = {:.2f})", *p);
          }
          values.push_back({{"size", point.size},
                            {"value", point.measured},
                            {"predicted", point.predicted},
                            {"series", series},
                            {"model", key.model}});
        }
      }
      if (values.empty() || (over_arms && std::string_view(quantity.name) == "prefill")) {
        continue;
      }
      std::string file = fmt::format("growth_{}_{}", quantity.name, over_arms ? "arms" : "tokens");
      std::replace(file.begin(), file.end(), ' ', '_');
      const std::string title = fmt::format("{} against {}, with fitted exponents", quantity.name,
                                            over_arms ? "arms" : "prompt tokens");
      const Json x = {{"field", "size"},
                      {"type", "quantitative"},
                      {"scale", {{"type", "log"}, {"base", 2}}},
                      {"title", over_arms ? "arms" : "prompt tokens"}};
      const auto y = [&](const char* field) {
        return Json{{"field", field},
                    {"type", "quantitative"},
                    {"scale", {{"type", "log"}}},
                    {"title", fmt::format("{}, {}", quantity.name, quantity.unit)}};
      };
      const Json color = {{"field", "series"},
                          {"type", "nominal"},
                          {"title", Json()},
                          {"legend", {{"labelLimit", 400}}}};
      Json layers = Json::array();
      layers.push_back({{"mark", {{"type", "line"}, {"point", true}}},
                        {"encoding", {{"x", x}, {"y", y("value")}, {"color", color}}}});
      layers.push_back({{"transform", Json::array({{{"filter", "datum.predicted > 0"}}})},
                        {"mark", {{"type", "line"}, {"strokeDash", {4, 4}}, {"opacity", 0.5}}},
                        {"encoding", {{"x", x}, {"y", y("predicted")}, {"color", color}}}});
      charts.push_back({.name = file,
                        .title = title,
                        .kind = "growth",
                        .spec = {{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
                                 {"title", {{"text", title}, {"subtitle", "dashed: predicted"}}},
                                 {"width", 480},
                                 {"height", 320},
                                 {"data", {{"values", values}}},
                                 {"layer", layers}}});
    }
  }
  return charts;
}

}  // namespace kvlab
