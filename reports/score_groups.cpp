#include "reports/score_groups.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "harness/base/check.h"

namespace kvlab {
namespace {

using Cell = ScoreData::Cell;

// Where one cell goes. A full-cache cell goes to several places when tables or columns are by
// budget.
struct Place {
  FieldCodes table, row;
  int32_t column, task;
};

class Grouper final {
 public:
  Grouper(const ScoreData& data, const FieldIndex& index, const ScoreTableOptions& options)
      : data_(data), index_(index), options_(options) {
    const auto is_row = [&](Field field) {
      return std::find(options.rows.begin(), options.rows.end(), field) != options.rows.end();
    };
    for (size_t i = 0; i < kNumFields; ++i) {
      const auto field = static_cast<Field>(i);
      // Data sets split tables only where they must, see split_by_dataset().
      in_table_[i] = !is_row(field) && field != options.columns && field != Field::kTask &&
                     field != Field::kDataset;
      in_row_[i] = is_row(field);
    }
    full_ = static_cast<int32_t>(std::find(data.budgets.begin(), data.budgets.end(), "full") -
                                 data.budgets.begin());
    spread_full_ = !is_row(Field::kBudget);
  }

  std::vector<TableGroup> run();

 private:
  template <typename Use>
  void for_each_place(const Cell& cell, Use use) const;
  FieldCodes without_budget(FieldCodes table) const {
    code(table, Field::kBudget) = -1;
    return table;
  }
  Place place_of(const FieldCodes& codes) const;
  void find_budgets();
  void split_by_dataset();
  void find_equal_samples();

  const ScoreData& data_;
  const FieldIndex& index_;
  const ScoreTableOptions& options_;
  std::array<bool, kNumFields> in_table_{}, in_row_{};
  int32_t full_;
  bool spread_full_;
  // Budgets other than "full", by table key without budget.
  absl::flat_hash_map<FieldCodes, std::set<int32_t>> budgets_;
  // Table keys (data set apart) in which one task and length has several data sets.
  std::set<FieldCodes> split_;
  // Samples seen, as (table, column, task) and prompt.
  absl::flat_hash_map<std::tuple<FieldCodes, int32_t, int32_t>, int32_t> slots_;
  std::vector<std::pair<int32_t, int32_t>> dropped_;  // slot, prompt: sorted; equal_samples only
};

Place Grouper::place_of(const FieldCodes& codes) const {
  Place place;
  for (size_t i = 0; i < kNumFields; ++i) {
    place.table[i] = in_table_[i] ? codes[i] : -1;
    place.row[i] = in_row_[i] ? codes[i] : -1;
  }
  place.column = code(codes, options_.columns);
  place.task = code(codes, Field::kTask);
  if (!split_.empty() && split_.contains(without_budget(place.table))) {
    code(place.table, Field::kDataset) = code(codes, Field::kDataset);
  }
  return place;
}

template <typename Use>
void Grouper::for_each_place(const Cell& cell, Use use) const {
  FieldCodes codes = index_.codes(cell);
  if (spread_full_ && cell.budget == full_) {
    const auto it = budgets_.find(without_budget(place_of(codes).table));
    if (it != budgets_.end()) {
      for (const int32_t budget : it->second) {
        code(codes, Field::kBudget) = budget;
        use(place_of(codes));
      }
      return;
    }
  }
  use(place_of(codes));
}

void Grouper::find_budgets() {
  for (const Cell& cell : data_.cells) {
    if (spread_full_ && cell.budget != full_) {
      budgets_[without_budget(place_of(index_.codes(cell)).table)].insert(cell.budget);
    }
  }
}

void Grouper::split_by_dataset() {
  // A row or column by data set keeps them apart by itself.
  if (in_row_[static_cast<size_t>(Field::kDataset)] || options_.columns == Field::kDataset) {
    return;
  }
  absl::flat_hash_map<std::tuple<FieldCodes, int32_t, int32_t>, int32_t> first;
  for (const Cell& cell : data_.cells) {
    const FieldCodes codes = index_.codes(cell);
    const FieldCodes table = without_budget(place_of(codes).table);
    const auto [it, added] =
        first.emplace(std::tuple(table, code(codes, Field::kTask), code(codes, Field::kLength)),
                      code(codes, Field::kDataset));
    if (!added && it->second != code(codes, Field::kDataset)) {
      split_.insert(table);
    }
  }
}

void Grouper::find_equal_samples() {
  // A sample stays where as many rows have it as ok as there are rows with that column and task.
  absl::flat_hash_map<int32_t, std::set<FieldCodes>> rows;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, size_t> ok;
  for (const Cell& cell : data_.cells) {
    for_each_place(cell, [&](const Place& place) {
      const auto slot = slots_
                            .emplace(std::tuple(place.table, place.column, place.task),
                                     static_cast<int32_t>(slots_.size()))
                            .first->second;
      rows[slot].insert(place.row);
      ok[{slot, cell.prompt}] += cell.status == CellStatus::kOk ? 1 : 0;
    });
  }
  for (const auto& [sample, count] : ok) {
    if (count < rows[sample.first].size()) {
      dropped_.push_back(sample);
    }
  }
  std::sort(dropped_.begin(), dropped_.end());
}

std::vector<TableGroup> Grouper::run() {
  split_by_dataset();
  find_budgets();
  if (options_.equal_samples) {
    find_equal_samples();
  }
  std::map<FieldCodes, TableGroup> tables;
  std::vector<std::pair<int32_t, int32_t>> seen;  // slot, prompt
  std::vector<std::tuple<FieldCodes, int32_t, int32_t>> slot_keys(slots_.size());
  for (const auto& [key, slot] : slots_) {
    slot_keys[static_cast<size_t>(slot)] = key;
  }
  // Cells come grouped by prompt, so the last place is often the next one too.
  for (const Cell& cell : data_.cells) {
    for_each_place(cell, [&](const Place& place) {
      const auto slot_key = std::tuple(place.table, place.column, place.task);
      const auto [it, added] = slots_.emplace(slot_key, static_cast<int32_t>(slots_.size()));
      if (added) {
        slot_keys.push_back(slot_key);
      }
      if (options_.equal_samples && std::binary_search(dropped_.begin(), dropped_.end(),
                                                       std::pair(it->second, cell.prompt))) {
        return;
      }
      seen.emplace_back(it->second, cell.prompt);
      TableGroup& table = tables[place.table];
      table.key = place.table;
      TaskGroup& group = table.rows[place.row][place.column].tasks[place.task];
      table.datasets.insert(code(index_.codes(cell), Field::kDataset));
      if (cell.status == CellStatus::kOk) {
        group.scores.add(cell.score);
        table.metrics[place.column].insert(cell.metric);
      } else {
        const auto reason = data_.reasons.find(cell.row_id);
        ++table.failures[{cell.method, cell.status,
                          reason == data_.reasons.end() ? std::string() : reason->second}];
      }
    });
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const auto& [slot, prompt] : seen) {
    const auto& [table, column, task] = slot_keys[static_cast<size_t>(slot)];
    ++tables[table].expected[column][task];
  }
  std::vector<TableGroup> result;
  for (auto& [key, table] : tables) {
    for (auto& [row, columns] : table.rows) {
      for (auto& [column, cell] : columns) {
        for (auto& [task, group] : cell.tasks) {
          group.expected = table.expected[column][task];
        }
      }
    }
    result.push_back(std::move(table));
  }
  return result;
}

}  // namespace

std::vector<TableGroup> group_scores(const ScoreData& data, const FieldIndex& index,
                                     const ScoreTableOptions& options) {
  return Grouper(data, index, options).run();
}

CellMean cell_mean(const CellGroup& cell, const std::map<int32_t, int64_t>& tasks) {
  CellMean mean;
  mean.complete = true;
  std::vector<Moments> groups;
  for (const auto& [task, expected] : tasks) {
    mean.expected += expected;
    const auto it = cell.tasks.find(task);
    mean.complete &= it != cell.tasks.end() && it->second.scores.count() == expected;
    if (it != cell.tasks.end() && it->second.scores.count() > 0) {
      groups.push_back(it->second.scores);
    }
  }
  if (groups.size() == 1) {
    mean.estimate = t_interval(groups.front());
  } else if (!groups.empty()) {
    mean.estimate = mean_of_means(groups);
  }
  return mean;
}

}  // namespace kvlab
