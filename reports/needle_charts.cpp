// Needle found, by depth and length: one panel for each method and budget.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "harness/base/status.h"
#include "reports/chart_style.h"
#include "reports/charts.h"
#include "reports/escape.h"
#include "reports/statistics.h"

namespace kvlab {
namespace {

constexpr size_t kMaxMethods = 10;
constexpr size_t kMaxBudgets = 6;

std::optional<double> depth_of(const StoredSample& sample) {
  const auto it = sample.extra.is_object() ? sample.extra.find("depth") : sample.extra.end();
  if (!sample.extra.is_object() || it == sample.extra.end() || !it->is_number()) {
    return std::nullopt;
  }
  return it->get<double>();
}

// Score by depth and length, for one method and budget.
using Panel = std::map<std::pair<double, int64_t>, Moments>;

struct NeedleTable {
  std::map<std::pair<int32_t, int32_t>, Panel> panels;  // by budget and method
  std::set<double> depths;
};

// Depths as they are where a grid was asked for, else in steps of ten per cent.
double band(double depth, const std::set<double>& depths) {
  constexpr size_t kGrid = 21;
  return depths.size() <= kGrid && std::all_of(depths.begin(), depths.end(),
                                               [](double d) { return d == std::round(d); })
             ? depth
             : std::min(90.0, std::floor(depth / 10) * 10);
}

class NeedleChart final {
 public:
  NeedleChart(const ScoreData& data, const FieldIndex& index, const NeedleTable& table)
      : data_(data), index_(index), table_(table) {}
  Json spec(const std::string& title);

 private:
  void choose();
  void add_panel(const Panel& panel, const std::string& method, const std::string& budget);
  bool is_full(int32_t budget) const {
    return data_.budgets[static_cast<size_t>(budget)] == "full";
  }

  const ScoreData& data_;
  const FieldIndex& index_;
  const NeedleTable& table_;
  Shown methods_, budgets_;
  Json values_ = Json::array();
};

void NeedleChart::choose() {
  std::vector<int32_t> methods, budgets;
  for (const auto& [arm, panel] : table_.panels) {
    methods.push_back(arm.second);
    budgets.push_back(arm.first);
  }
  std::sort(methods.begin(), methods.end());
  std::sort(budgets.begin(), budgets.end());
  if (budgets.back() != budgets.front()) {
    std::erase_if(budgets, [&](int32_t budget) { return is_full(budget); });
  }
  methods_ = first_codes(methods, kMaxMethods);
  budgets_ = first_codes(budgets, kMaxBudgets);
}

void NeedleChart::add_panel(const Panel& panel, const std::string& method,
                            const std::string& budget) {
  std::map<std::pair<double, int64_t>, std::pair<double, int64_t>> sums;
  for (const auto& [place, scores] : panel) {
    auto& [sum, count] = sums[{band(place.first, table_.depths), place.second}];
    sum += scores.mean() * static_cast<double>(scores.count());
    count += scores.count();
  }
  for (const auto& [place, total] : sums) {
    values_.push_back({{"method", method},
                       {"budget", budget},
                       {"depth", place.first},
                       {"length", place.second},
                       {"score", total.first / static_cast<double>(total.second)},
                       {"n", total.second}});
  }
}

Json NeedleChart::spec(const std::string& title) {
  choose();
  std::vector<std::string> method_order, budget_order;
  for (const int32_t budget : budgets_.codes) {
    budget_order.push_back(plain_line(index_.label(Field::kBudget, budget)));
  }
  for (const int32_t method : methods_.codes) {
    method_order.push_back(chart_method(index_, method));
    for (size_t b = 0; b < budgets_.codes.size(); ++b) {
      for (const auto& [arm, panel] : table_.panels) {
        // The full cache stands beside every budget.
        if (arm.second == method && (arm.first == budgets_.codes[b] || is_full(arm.first))) {
          add_panel(panel, method_order.back(), budget_order[b]);
          break;
        }
      }
    }
  }
  Json spec = base_spec(title, std::move(values_));
  if (methods_.cut || budgets_.cut) {
    spec["title"]["subtitle"] = fmt::format(
        "the first {} methods and {} budgets; --where chooses others", kMaxMethods, kMaxBudgets);
  }
  const auto by = [](const char* field, const std::string& name,
                     const std::vector<std::string>& order) {
    Json facet = {{"field", field}, {"type", "nominal"}, {"title", name}, {"sort", order}};
    return facet;
  };
  spec["facet"] = {{"column", by("method", "", method_order)},
                   {"row", by("budget", "budget", budget_order)}};
  spec["facet"]["column"]["title"] = nullptr;
  spec["spacing"] = 12;
  const auto methods = static_cast<int>(methods_.codes.size());
  spec["spec"] = {{"width", std::clamp(760 / std::max(1, methods), 70, 150)},
                  {"height", 110},
                  {"mark", "rect"},
                  {"encoding",
                   {{"x",
                     {{"field", "length"},
                      {"type", "ordinal"},
                      {"title", "length, tokens"},
                      {"axis", {{"labelAngle", -45}}}}},
                    {"y", {{"field", "depth"}, {"type", "ordinal"}, {"title", "depth, %"}}},
                    {"color",
                     {{"field", "score"},
                      {"type", "quantitative"},
                      {"title", "mean score"},
                      {"scale", {{"domain", {0, 100}}, {"scheme", "viridis"}}}}}}}};
  return spec;
}

}  // namespace

std::vector<Chart> needle_charts(const ScoreData& data) {
  const FieldIndex index(data);
  std::map<FieldCodes, NeedleTable> tables;  // by table key without length and data set
  for (const ScoreData::Cell& cell : data.cells) {
    const auto& prompt = data.prompts[static_cast<size_t>(cell.prompt)];
    const StoredSample& sample = data.samples[static_cast<size_t>(prompt.sample)];
    const auto depth = depth_of(sample);
    if (!depth || cell.status != CellStatus::kOk) {
      continue;
    }
    FieldCodes key = index.codes(cell);
    for (const Field field : {Field::kLength, Field::kDataset, Field::kMethod, Field::kBudget}) {
      code(key, field) = -1;
    }
    NeedleTable& table = tables[key];
    table.depths.insert(*depth);
    table.panels[{cell.budget, cell.method}][{*depth, sample.length}].add(cell.score);
  }
  std::vector<Chart> charts;
  for (const auto& [key, table] : tables) {
    Chart chart{.name = fmt::format("needle_{}", charts.size() + 1),
                .title = chart_title(index, key),
                .kind = "Needle found, by depth and length",
                .spec = {}};
    chart.spec = NeedleChart(data, index, table).spec(chart.title);
    charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace kvlab
