#include "reports/growth.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "reports/bench_rows.h"
#include "reports/chart_style.h"
#include "reports/escape.h"
#include "reports/statistics.h"

namespace kvlab {
namespace {

// One line is points of these: size, median measured, median predicted.
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

std::vector<Quantity> quantities(bool over_arms) {
  using M = BenchMeasurement;
  std::vector<Quantity> all = {
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
  if (!over_arms) {  // one prefill serves any number of arms
    all.insert(all.begin(), {"prefill", "s", [](const M& m) { return m.prefill_s; },
                             [](const M& m) { return m.predicted_prefill_s; }});
  }
  return all;
}

const char* size_name(bool over_arms) { return over_arms ? "arms" : "prompt tokens"; }

struct GrowthKey {
  BenchSetting setting;
  BenchRowKey row;
  int64_t fixed = 0;  // arms, or prompt tokens
  auto operator<=>(const GrowthKey&) const = default;
};

// Medians by size; `over_arms`: size is the number of arms at a prompt length, else the prompt's
// length at one arm.
std::map<GrowthKey, std::vector<Point>> growth(const BenchData& data, const Quantity& quantity,
                                               bool over_arms) {
  using Values = std::vector<double>;
  std::map<GrowthKey, std::map<int64_t, std::pair<Values, Values>>> all;
  for (const StoredBench& row : data.rows) {
    const BenchMeasurement& m = row.measurement;
    if (m.status != CellStatus::kOk || (!over_arms && m.arms != 1)) {
      continue;
    }
    const GrowthKey key{bench_setting(row),
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
  cell.text = value ? fmt::format("{:.2f}", *value) : kMissing;
  cell.value = value;
  cell.count = cell.expected = 1;
  return cell;
}

std::string method_text(const BenchRowKey& row) {
  return row.budget == "full" ? row.method
                              : fmt::format("{} {}, {}", row.method, row.budget, row.evicted());
}

// The lines of one table, by quantity.
using Lines = std::map<GrowthKey, std::map<std::string, std::vector<Point>>>;

Table growth_table(const BenchSetting& setting, const Lines& lines, bool over_arms) {
  Table table;
  table.title = fmt::format("growth with {}, {}", size_name(over_arms), setting.text());
  table.attributes = setting.attributes();
  table.caption =
      "Exponent p of size^p, least squares in logarithms over medians: measured, and of the "
      "prediction. Last: between the two largest sizes";
  table.row_headers = {"method", over_arms ? "prompt" : "sizes"};
  for (const Quantity& quantity : quantities(over_arms)) {
    for (const char* which : {"measured", "predicted", "last", "last predicted"}) {
      table.columns.push_back({quantity.name, which, "exponent"});
    }
  }
  for (const auto& [key, by_quantity] : lines) {
    const std::vector<Point>& any = by_quantity.begin()->second;
    TableRow row;
    row.headers = {method_text(key.row),
                   over_arms ? fmt::format("{}", key.fixed)
                             : fmt::format("{:.0f} to {:.0f}", any.front().size, any.back().size)};
    for (const Quantity& quantity : quantities(over_arms)) {
      const std::vector<Point>& points = by_quantity.at(quantity.name);
      row.cells.push_back(exponent_cell(exponent(points, false)));
      row.cells.push_back(exponent_cell(exponent(points, true)));
      row.cells.push_back(exponent_cell(last_exponent(points, false)));
      row.cells.push_back(exponent_cell(last_exponent(points, true)));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string series_name(const GrowthKey& key, const std::vector<Point>& points, bool over_arms) {
  std::string name = method_text(key.row);
  if (over_arms) {
    name += fmt::format(", {} tokens", key.fixed);
  }
  if (const auto p = exponent(points, false)) {
    name += fmt::format(" (p = {:.2f})", *p);
  }
  return plain_line(name);
}

Chart growth_chart(const BenchSetting& setting, const Quantity& quantity, bool over_arms,
                   size_t number, Json values) {
  Chart chart;
  chart.name = fmt::format("growth_{}_{}_{}", quantity.name, over_arms ? "arms" : "tokens", number);
  std::replace(chart.name.begin(), chart.name.end(), ' ', '_');
  chart.title = plain_line(fmt::format("{} against {}, {}, with fitted exponents", quantity.name,
                                       size_name(over_arms), setting.text()));
  chart.kind = "growth";
  chart.spec = base_spec(chart.title, std::move(values));
  chart.spec["title"]["subtitle"] = "dashed: predicted";
  chart.spec["width"] = 480;
  chart.spec["height"] = 320;
  const Json x = {{"field", "size"},
                  {"type", "quantitative"},
                  {"scale", {{"type", "log"}, {"base", 2}}},
                  {"title", size_name(over_arms)}};
  const auto y = [&](const char* field) {
    return Json{{"field", field},
                {"type", "quantitative"},
                {"scale", {{"type", "log"}}},
                {"title", fmt::format("{}, {}", quantity.name, quantity.unit)}};
  };
  const Json color = {{"field", "series"},
                      {"type", "nominal"},
                      {"title", nullptr},
                      {"legend", {{"labelLimit", 400}}}};
  Json layers = Json::array();
  layers.push_back({{"mark", {{"type", "line"}, {"point", true}}},
                    {"encoding", {{"x", x}, {"y", y("value")}, {"color", color}}}});
  layers.push_back({{"transform", Json::array({{{"filter", "datum.predicted > 0"}}})},
                    {"mark", {{"type", "line"}, {"strokeDash", {4, 4}}, {"opacity", 0.5}}},
                    {"encoding", {{"x", x}, {"y", y("predicted")}, {"color", color}}}});
  chart.spec["layer"] = std::move(layers);
  return chart;
}

}  // namespace

std::vector<Table> growth_tables(const BenchData& data) {
  std::vector<Table> tables;
  for (const bool over_arms : {false, true}) {
    std::map<BenchSetting, Lines> settings;
    for (const Quantity& quantity : quantities(over_arms)) {
      for (auto& [key, points] : growth(data, quantity, over_arms)) {
        settings[key.setting][key][quantity.name] = points;
      }
    }
    for (const auto& [setting, lines] : settings) {
      tables.push_back(growth_table(setting, lines, over_arms));
    }
  }
  return tables;
}

std::vector<Chart> growth_charts(const BenchData& data) {
  std::vector<Chart> charts;
  for (const bool over_arms : {false, true}) {
    for (const Quantity& quantity : quantities(over_arms)) {
      std::map<BenchSetting, Json> settings;
      for (const auto& [key, points] : growth(data, quantity, over_arms)) {
        for (const Point& point : points) {
          if (point.measured > 0) {
            settings[key.setting].push_back({{"size", point.size},
                                             {"value", point.measured},
                                             {"predicted", point.predicted},
                                             {"series", series_name(key, points, over_arms)}});
          }
        }
      }
      size_t number = 0;
      for (auto& [setting, values] : settings) {
        charts.push_back(growth_chart(setting, quantity, over_arms, ++number, std::move(values)));
      }
    }
  }
  return charts;
}

}  // namespace kvlab
