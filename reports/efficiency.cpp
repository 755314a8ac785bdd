#include "reports/efficiency.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "harness/base/status.h"
#include "reports/statistics.h"
#include "reports/table.h"

namespace kvlab {
namespace {

// Cells of one method and budget at one length, all tasks and data sets together.
FieldCodes cost_key(const FieldIndex& index, const ScoreData::Cell& cell) {
  FieldCodes key = index.codes(cell);
  code(key, Field::kTask) = -1;
  code(key, Field::kDataset) = -1;
  return key;
}

std::map<FieldCodes, std::vector<const CellCost*>> group_costs(const ScoreData& data,
                                                               const FieldIndex& index,
                                                               const std::vector<CellCost>& costs) {
  std::map<FieldCodes, std::vector<const CellCost*>> groups;
  for (size_t i = 0; i < data.cells.size(); ++i) {
    if (data.cells[i].status == CellStatus::kOk) {
      groups[cost_key(index, data.cells[i])].push_back(&costs[i]);
    }
  }
  return groups;
}

struct Measure {
  const char* name;
  const char* unit;
  int digits;
  double (*value)(const CellCost&);
};

double per_prefill(const CellCost& cost) {
  return cost.timings.prefill_s > 0 ? 100 * cost.eviction_s() / cost.timings.prefill_s : 0;
}
double step_ms(const CellCost& cost) {
  return cost.timings.decode_steps > 0
             ? 1000 * cost.timings.decode_s / static_cast<double>(cost.timings.decode_steps)
             : std::numeric_limits<double>::quiet_NaN();  // a reply of its first token alone
}

constexpr Measure kMeasures[] = {
    {"prefill", "s", 3, [](const CellCost& c) { return c.timings.prefill_s; }},
    {"query", "ms", 2, [](const CellCost& c) { return 1000 * c.timings.query_s; }},
    {"draft", "ms", 2, [](const CellCost& c) { return 1000 * c.timings.draft_s; }},
    {"score", "ms", 2, [](const CellCost& c) { return 1000 * c.timings.score_s; }},
    {"choose", "ms", 2, [](const CellCost& c) { return 1000 * c.timings.choose_s; }},
    {"compact", "ms", 2, [](const CellCost& c) { return 1000 * c.timings.compact_s; }},
    {"eviction", "ms", 2, [](const CellCost& c) { return 1000 * c.eviction_s(); }},
    {"eviction", "% of prefill", 2, per_prefill},
    {"draft tokens", "", 0, [](const CellCost& c) { return static_cast<double>(c.draft_tokens); }},
    {"decode step", "ms, batch", 2, step_ms},
    {"batch", "arms", 0,
     [](const CellCost& c) { return static_cast<double>(c.timings.arms_in_batch); }},
    {"kept", "per head", 1, [](const CellCost& c) { return c.kept_mean; }},
    {"cache", "MiB", 2,
     [](const CellCost& c) { return static_cast<double>(c.cache_bytes) / (1024.0 * 1024.0); }},
};

TableCell median_cell(const std::vector<const CellCost*>& costs, const Measure& measure) {
  std::vector<double> values;
  values.reserve(costs.size());
  for (const CellCost* cost : costs) {
    if (const double value = measure.value(*cost); !std::isnan(value)) {
      values.push_back(value);
    }
  }
  if (values.empty()) {
    return {.text = kMissing};
  }
  const Estimate median = median_interval(std::move(values));
  TableCell cell;
  cell.value = median.mean;
  cell.low = median.low;
  cell.high = median.high;
  cell.count = cell.expected = median.count;
  cell.text = fmt::format("{:.{}f}", median.mean, measure.digits);
  return cell;
}

}  // namespace

std::vector<Table> efficiency_tables(const ScoreData& data, const std::vector<CellCost>& costs) {
  const FieldIndex index(data);
  std::map<FieldCodes, std::map<std::pair<int32_t, int32_t>, std::vector<const CellCost*>>> tables;
  for (auto& [key, group] : group_costs(data, index, costs)) {
    FieldCodes table = key;
    code(table, Field::kMethod) = -1;
    code(table, Field::kBudget) = -1;
    tables[table][{code(key, Field::kBudget), code(key, Field::kMethod)}] = std::move(group);
  }
  std::vector<Table> result;
  for (const auto& [key, rows] : tables) {
    Table table;
    table.title = "cost";
    for (size_t i = 0; i < kNumFields; ++i) {
      if (key[i] >= 0) {
        const auto field = static_cast<Field>(i);
        table.attributes.emplace_back(field_name(field), index.label(field, key[i]));
        table.title += fmt::format(", {} {}", field_name(field), index.label(field, key[i]));
      }
    }
    table.caption =
        "Medians over samples. Eviction is everything between prefill and the first decoded token; "
        "a decode step serves all arms of the batch";
    table.row_headers = {"method", "budget", "n"};
    for (const Measure& measure : kMeasures) {
      table.columns.push_back({measure.name, measure.unit, fmt::format("median {}", measure.unit)});
    }
    int group = 0;
    int32_t last_budget = rows.begin()->first.first;
    for (const auto& [row_key, group_costs] : rows) {
      group += row_key.first != last_budget ? 1 : 0;
      last_budget = row_key.first;
      TableRow row;
      row.group = group;
      row.headers = {index.label(Field::kMethod, row_key.second),
                     index.label(Field::kBudget, row_key.first),
                     fmt::format("{}", group_costs.size())};
      for (const Measure& measure : kMeasures) {
        row.cells.push_back(median_cell(group_costs, measure));
      }
      table.rows.push_back(std::move(row));
    }
    result.push_back(std::move(table));
  }
  return result;
}

std::map<FieldCodes, double> median_eviction_ms(const ScoreData& data, const FieldIndex& index,
                                                const std::vector<CellCost>& costs) {
  std::map<FieldCodes, double> medians;
  for (const auto& [key, group] : group_costs(data, index, costs)) {
    std::vector<double> values;
    for (const CellCost* cost : group) {
      values.push_back(1000 * cost->eviction_s());
    }
    medians[key] = quantile(values, 0.5);
  }
  return medians;
}

}  // namespace kvlab
