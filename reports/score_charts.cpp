// Scores against budget, length and cost.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "harness/base/status.h"
#include "reports/chart_style.h"
#include "reports/charts.h"
#include "reports/efficiency.h"
#include "reports/escape.h"
#include "reports/score_groups.h"

namespace kvlab {
namespace {

constexpr int kWidth = 430;
constexpr int kHeight = 290;

// "64", "12.5%": the number, where the whole text is one.
std::optional<double> number_of(std::string_view text) {
  text.remove_suffix(text.ends_with('%') ? 1 : 0);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value > 0 ? std::optional(value) : std::nullopt;
}

// The horizontal axis of a line chart: numbers on a logarithmic one, anything else in order.
class Axis final {
 public:
  Axis(const std::vector<std::string>& labels, std::string title)
      : labels_(labels), title_(std::move(title)) {
    const bool percent = !labels.empty() && labels.front().ends_with('%');
    numeric_ = std::all_of(labels.begin(), labels.end(), [&](const std::string& label) {
      return number_of(label) && label.ends_with('%') == percent;
    });
    title_ += percent && numeric_ ? " (%)" : "";
  }
  // `lane` of `lanes`: methods stand a little apart, so that their intervals do not cover each
  // other.
  Json place(const std::string& label, size_t lane, size_t lanes) const {
    if (!numeric_) {
      return label;
    }
    const double shift = static_cast<double>(lane) - static_cast<double>(lanes - 1) / 2;
    return *number_of(label) * std::exp2(0.03 * shift);
  }
  Json encoding() const {
    if (!numeric_) {
      return {{"field", "x"},
              {"type", "ordinal"},
              {"title", title_},
              {"scale", {{"domain", labels_}}},
              {"axis", {{"labelAngle", 0}}}};
    }
    Json values = Json::array();
    double low = *number_of(labels_.front()), high = low;
    for (const std::string& label : labels_) {
      const double value = *number_of(label);
      values.push_back(value);
      low = std::min(low, value);
      high = std::max(high, value);
    }
    return {
        {"field", "x"},
        {"type", "quantitative"},
        {"title", title_},
        {"scale",
         {{"type", "log"}, {"base", 2}, {"nice", false}, {"domain", {low * 0.85, high * 1.18}}}},
        {"axis", {{"values", values}, {"format", "~r"}, {"grid", false}}}};
  }

 private:
  std::vector<std::string> labels_;
  std::string title_;
  bool numeric_ = false;
};

Json score_axis(double highest) {
  const double top = std::min(100.0, std::max(10.0, std::ceil(highest / 10) * 10));
  return {{"field", "score"},
          {"type", "quantitative"},
          {"title", "mean score"},
          {"scale", {{"domain", {0, top}}, {"clamp", true}}}};
}

Json line_layers(const Json& score) {
  const Json low = {{"field", "low"}, {"type", "quantitative"}, {"scale", score.at("scale")}};
  return {
      {{"mark", {{"type", "rule"}, {"strokeWidth", 1.4}, {"opacity", 0.55}}},
       {"encoding", {{"y", low}, {"y2", {{"field", "high"}}}}}},
      {{"mark", {{"type", "line"}, {"strokeWidth", 2}}},
       {"encoding",
        {{"y", score},
         {"strokeDash",
          {{"condition", {{"test", "datum.reference"}, {"value", {5, 4}}}}, {"value", {1, 0}}}}}}},
      {{"mark", {{"type", "point"}, {"filled", true}, {"size", 42}, {"opacity", 1}}},
       {"encoding", {{"y", score}}}}};
}

// Lines of mean scores with intervals over the values of one field.
std::vector<Chart> line_charts(const ScoreData& data, Field columns, const std::string& name,
                               const std::string& kind, const std::string& axis_title) {
  const FieldIndex index(data);
  ScoreTableOptions options;
  options.rows = {Field::kMethod};
  options.columns = columns;
  std::vector<Chart> charts;
  for (const TableGroup& table : group_scores(data, index, options)) {
    if (table.expected.size() < 2) {
      continue;
    }
    std::vector<std::string> labels;
    for (const auto& [column, tasks] : table.expected) {
      labels.push_back(plain_line(index.label(columns, column)));
    }
    const Axis axis(labels, axis_title);
    std::vector<int32_t> methods;
    for (const auto& [row, cells] : table.rows) {
      methods.push_back(code(row, Field::kMethod));
    }
    Json values = Json::array();
    double highest = 0;
    size_t lane = 0;
    for (const auto& [row, cells] : table.rows) {
      const int32_t method = code(row, Field::kMethod);
      for (const auto& [column, cell] : cells) {
        const CellMean mean = cell_mean(cell, table.expected.at(column));
        if (!mean.complete || mean.estimate.count == 0) {
          continue;
        }
        Json value = {
            {"method", chart_method(index, method)},
            {"x", axis.place(plain_line(index.label(columns, column)), lane, table.rows.size())},
            {"at", plain_line(index.label(columns, column))},
            {"score", mean.estimate.mean},
            {"n", mean.estimate.count},
            {"reference", data.methods[static_cast<size_t>(method)].name == "full"}};
        if (mean.estimate.low) {
          value["low"] = *mean.estimate.low;
          value["high"] = *mean.estimate.high;
        }
        highest = std::max(highest, mean.estimate.high.value_or(mean.estimate.mean));
        values.push_back(std::move(value));
      }
      ++lane;
    }
    if (values.empty()) {
      continue;
    }
    Chart chart{.name = fmt::format("{}_{}", name, charts.size() + 1),
                .title = chart_title(index, table.key),
                .kind = kind,
                .spec = {}};
    chart.spec = base_spec(chart.title, std::move(values));
    chart.spec["width"] = kWidth;
    chart.spec["height"] = kHeight;
    chart.spec["encoding"] = {{"x", axis.encoding()},
                              {"color", method_colour(data, index, methods)}};
    chart.spec["layer"] = line_layers(score_axis(highest));
    charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace

std::vector<Chart> score_by_budget_charts(const ScoreData& data) {
  return line_charts(data, Field::kBudget, "score_by_budget", "Score against budget",
                     "budget: entries per layer and KV head");
}

std::vector<Chart> score_by_length_charts(const ScoreData& data) {
  return line_charts(data, Field::kLength, "score_by_length", "Score against length",
                     "prompt length, tokens");
}

std::vector<Chart> cost_charts(const ScoreData& data, const std::vector<CellCost>& costs) {
  const FieldIndex index(data);
  const std::map<FieldCodes, double> eviction = median_eviction_ms(data, index, costs);
  ScoreTableOptions options;
  options.rows = {Field::kMethod, Field::kBudget};
  options.columns = Field::kLength;
  std::vector<Chart> charts;
  for (const TableGroup& table : group_scores(data, index, options)) {
    for (const auto& [length, tasks] : table.expected) {
      Json values = Json::array();
      std::vector<int32_t> methods;
      bool all_positive = true;
      double highest = 0;
      for (const auto& [row, cells] : table.rows) {
        const auto cell = cells.find(length);
        FieldCodes key = table.key;
        code(key, Field::kDataset) = -1;
        code(key, Field::kLength) = length;
        code(key, Field::kMethod) = code(row, Field::kMethod);
        code(key, Field::kBudget) = code(row, Field::kBudget);
        const auto cost = eviction.find(key);
        if (cell == cells.end() || cost == eviction.end()) {
          continue;
        }
        const CellMean mean = cell_mean(cell->second, tasks);
        if (!mean.complete || mean.estimate.count == 0) {
          continue;
        }
        methods.push_back(code(row, Field::kMethod));
        all_positive &= cost->second > 0;
        highest = std::max(highest, mean.estimate.mean);
        values.push_back(
            {{"method", chart_method(index, code(row, Field::kMethod))},
             {"budget", plain_line(index.label(Field::kBudget, code(row, Field::kBudget)))},
             {"budget_order", code(row, Field::kBudget)},
             {"eviction_ms", cost->second},
             {"score", mean.estimate.mean}});
      }
      if (values.size() < 2) {
        continue;
      }
      FieldCodes key = table.key;
      code(key, Field::kLength) = length;
      Chart chart{.name = fmt::format("cost_{}", charts.size() + 1),
                  .title = chart_title(index, key),
                  .kind = "Cost against quality",
                  .spec = {}};
      std::sort(methods.begin(), methods.end());
      chart.spec = base_spec(chart.title, std::move(values));
      chart.spec["width"] = kWidth;
      chart.spec["height"] = kHeight;
      chart.spec["encoding"] = {
          {"x",
           {{"field", "eviction_ms"},
            {"type", "quantitative"},
            {"title", "median time between prefill and the first decoded token, ms"},
            {"scale", {{"type", all_positive ? "log" : "symlog"}, {"padding", 20}}},
            {"axis", {{"tickCount", 6}, {"format", "~r"}, {"grid", false}}}}},
          {"y", score_axis(highest)},
          {"color", method_colour(data, index, first_codes(methods, methods.size()).codes)}};
      chart.spec["layer"] = {
          {{"mark", {{"type", "line"}, {"opacity", 0.35}}},
           {"encoding", {{"order", {{"field", "budget_order"}, {"type", "quantitative"}}}}}},
          {{"mark", {{"type", "point"}, {"filled", true}, {"size", 70}, {"opacity", 1}}}},
          {{"mark", {{"type", "text"}, {"align", "left"}, {"dx", 7}, {"dy", -5}, {"fontSize", 9}}},
           {"encoding", {{"text", {{"field", "budget"}, {"type", "nominal"}}}}}}};
      charts.push_back(std::move(chart));
    }
  }
  return charts;
}

}  // namespace kvlab
