#include "reports/score_table.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/base/check.h"
#include "harness/base/status.h"
#include "reports/score_groups.h"

namespace kvlab {
namespace {

constexpr int32_t kMeanColumn = -1;

bool has_field(const std::vector<Field>& fields, Field field) {
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

std::string mean_text(const Estimate& estimate) {
  return estimate.low ? fmt::format("{:.1f} ± {:.1f}", estimate.mean, estimate.mean - *estimate.low)
                      : fmt::format("{:.1f}", estimate.mean);
}

class TableBuilder final {
 public:
  TableBuilder(const ScoreData& data, const FieldIndex& index, const ScoreTableOptions& options,
               const TableGroup& group)
      : data_(data), index_(index), options_(options), group_(group) {}

  Table build() {
    add_attributes();
    add_columns();
    add_rows();
    mark_best();
    add_notes();
    return std::move(table_);
  }

 private:
  bool columns_are_tasks() const { return options_.columns == Field::kTask; }
  bool cells_are_tasks() const {
    return columns_are_tasks() || has_field(options_.rows, Field::kTask);
  }
  void add_attributes();
  void add_columns();
  void add_rows();
  void mark_best();
  void add_notes();
  std::string metric_of(int32_t column) const;
  TableCell make_cell(const CellMean& mean, bool refuse_incomplete);
  CellMean task_mean(const std::map<int32_t, CellGroup>& row, int32_t column) const;
  bool is_oracle(const FieldCodes& row) const;
  bool is_full(const FieldCodes& row) const;

  const ScoreData& data_;
  const FieldIndex& index_;
  const ScoreTableOptions& options_;
  const TableGroup& group_;
  Table table_;
  std::vector<int32_t> column_codes_;
  std::vector<FieldCodes> row_codes_;
  bool any_partial_ = false, any_refused_ = false, any_saturated_ = false;
};

bool TableBuilder::is_oracle(const FieldCodes& row) const {
  const int32_t method = code(row, Field::kMethod);
  return method >= 0 && data_.methods[static_cast<size_t>(method)].name == "oracle";
}

bool TableBuilder::is_full(const FieldCodes& row) const {
  const int32_t budget = code(row, Field::kBudget);
  const int32_t method = code(row, Field::kMethod);
  return (budget >= 0 && data_.budgets[static_cast<size_t>(budget)] == "full") ||
         (method >= 0 && data_.methods[static_cast<size_t>(method)].name == "full");
}

void TableBuilder::add_attributes() {
  std::string title;
  const auto add_to_title = [&](const std::string& part) {
    title += (title.empty() ? "" : ", ") + part;
  };
  for (size_t i = 0; i < kNumFields; ++i) {
    const auto field = static_cast<Field>(i);
    const int32_t value = group_.key[i];
    if (value < 0) {
      continue;
    }
    const std::string& label = index_.label(field, value);
    table_.attributes.emplace_back(field_name(field), label);
    switch (field) {
      case Field::kBenchmark:
      case Field::kModel:
        add_to_title(label);
        break;
      case Field::kLength:
        if (label != "any") {
          add_to_title(label + " tokens");
        }
        break;
      case Field::kQuestionAware:
        if (label == "no") {
          add_to_title("compressed without seeing the question");
        }
        break;
      default:
        add_to_title(fmt::format("{} {}", field_name(field), label));
    }
  }
  if (code(group_.key, Field::kDataset) < 0 && !has_field(options_.rows, Field::kDataset) &&
      options_.columns != Field::kDataset) {
    std::string names;
    for (const int32_t dataset : group_.datasets) {
      names += (names.empty() ? "" : "; ") + index_.label(Field::kDataset, dataset);
    }
    table_.attributes.emplace_back("dataset", names);
  }
  table_.title = title;
  for (const Field field : options_.rows) {
    table_.row_headers.emplace_back(field_name(field));
  }
}

std::string TableBuilder::metric_of(int32_t column) const {
  const auto it = group_.metrics.find(column);
  std::string names;
  if (it != group_.metrics.end()) {
    for (const int16_t metric : it->second) {
      names += (names.empty() ? "" : " / ") + data_.metrics[static_cast<size_t>(metric)];
    }
  }
  return names;
}

void TableBuilder::add_columns() {
  std::set<std::string> metrics;
  for (const auto& [column, tasks] : group_.expected) {
    column_codes_.push_back(column);
    metrics.insert(metric_of(column));
  }
  const bool one_metric = metrics.size() == 1;
  int64_t all = 0;
  for (const int32_t column : column_codes_) {
    const auto& tasks = group_.expected.at(column);
    const int64_t samples =
        std::accumulate(tasks.begin(), tasks.end(), int64_t{0},
                        [](int64_t sum, const auto& t) { return sum + t.second; });
    all += samples;
    TableColumn header{
        .name = index_.label(options_.columns, column), .detail = "", .metric = metric_of(column)};
    if (!one_metric) {
      header.detail = header.metric + ", ";
    }
    if (!cells_are_tasks()) {
      header.detail += fmt::format("{} task{}, ", tasks.size(), tasks.size() == 1 ? "" : "s");
    }
    if (!has_field(options_.rows, Field::kTask)) {
      header.detail += fmt::format("n={}", samples);
    }
    table_.columns.push_back(std::move(header));
  }
  if (columns_are_tasks() && column_codes_.size() > 1) {
    table_.columns.push_back({.name = "mean",
                              .detail = fmt::format("{} tasks, n={}", column_codes_.size(), all),
                              .metric = one_metric ? *metrics.begin() : "mean of metrics"});
    column_codes_.push_back(kMeanColumn);
  }
  table_.caption =
      fmt::format("Score 0 to 100{}: mean ± half of its 95 % interval (Student's t over samples)",
                  one_metric ? fmt::format(", {}", *metrics.begin())
                             : std::string(", metric below the column"));
}

TableCell TableBuilder::make_cell(const CellMean& mean, bool refuse_incomplete) {
  TableCell cell;
  cell.count = mean.estimate.count;
  cell.expected = mean.expected;
  if (mean.estimate.count == 0 || (!mean.complete && refuse_incomplete)) {
    cell.text = kMissing;
    any_refused_ |= mean.expected > 0;
    return cell;
  }
  cell.value = mean.estimate.mean;
  cell.low = mean.estimate.low;
  cell.high = mean.estimate.high;
  cell.text = mean_text(mean.estimate);
  any_saturated_ |= mean.estimate.low && *mean.estimate.low == *mean.estimate.high;
  if (!mean.complete) {
    cell.text += fmt::format(" ({}/{})", cell.count, cell.expected);
    any_partial_ = true;
  }
  return cell;
}

// The mean over all task columns of a row, or of one column's tasks.
CellMean TableBuilder::task_mean(const std::map<int32_t, CellGroup>& row, int32_t column) const {
  if (column != kMeanColumn) {
    const auto cell = row.find(column);
    const CellGroup none;
    // With tasks as rows a cell is about its own task only.
    if (has_field(options_.rows, Field::kTask) && cell != row.end()) {
      std::map<int32_t, int64_t> own;
      for (const auto& [task, group] : cell->second.tasks) {
        own[task] = group.expected;
      }
      return cell_mean(cell->second, own);
    }
    return cell_mean(cell == row.end() ? none : cell->second, group_.expected.at(column));
  }
  CellGroup all;
  std::map<int32_t, int64_t> expected;
  for (const auto& [task, tasks] : group_.expected) {
    expected[task] = tasks.begin()->second;
    const auto cell = row.find(task);
    if (cell != row.end()) {
      all.tasks[task] = cell->second.tasks.begin()->second;
    }
  }
  return cell_mean(all, expected);
}

void TableBuilder::add_rows() {
  for (const auto& [row, cells] : group_.rows) {
    row_codes_.push_back(row);
  }
  // Full cache on top, then budgets ascending, the oracle last in each.
  const auto rank = [&](const FieldCodes& row) {
    return std::tuple(!is_full(row), code(row, Field::kBudget), is_oracle(row), row);
  };
  std::sort(row_codes_.begin(), row_codes_.end(),
            [&](const FieldCodes& a, const FieldCodes& b) { return rank(a) < rank(b); });
  int next_group = 0;
  for (size_t i = 0; i < row_codes_.size(); ++i) {
    const FieldCodes& codes = row_codes_[i];
    TableRow row;
    for (const Field field : options_.rows) {
      row.headers.push_back(index_.label(field, code(codes, field)));
    }
    const auto& cells = group_.rows.at(codes);
    for (const int32_t column : column_codes_) {
      const bool refuse = column == kMeanColumn || !cells_are_tasks();
      row.cells.push_back(make_cell(task_mean(cells, column), refuse));
    }
    if (i > 0 && (is_full(codes) != is_full(row_codes_[i - 1]) ||
                  code(codes, Field::kBudget) != code(row_codes_[i - 1], Field::kBudget))) {
      ++next_group;
    }
    row.group = next_group;
    table_.rows.push_back(std::move(row));
  }
}

void TableBuilder::mark_best() {
  if (!has_field(options_.rows, Field::kMethod)) {
    return;  // rows are not rivals
  }
  // Rivals share every row field but the method.
  std::map<FieldCodes, std::vector<size_t>> rivals;
  for (size_t i = 0; i < row_codes_.size(); ++i) {
    if (!is_full(row_codes_[i]) && !is_oracle(row_codes_[i])) {
      FieldCodes key = row_codes_[i];
      code(key, Field::kMethod) = -1;
      rivals[key].push_back(i);
    }
  }
  for (const auto& [key, rows] : rivals) {
    for (size_t column = 0; column < table_.columns.size(); ++column) {
      double best = -1, worst = 101;
      const auto eligible = [&](size_t row) {
        const TableCell& cell = table_.rows[row].cells[column];
        return cell.value && cell.count == cell.expected;
      };
      for (const size_t row : rows) {
        if (eligible(row)) {
          best = std::max(best, *table_.rows[row].cells[column].value);
          worst = std::min(worst, *table_.rows[row].cells[column].value);
        }
      }
      for (const size_t row : rows) {
        // Means of the same scores in another order may differ in the last bit. Where all are
        // equal, none is best.
        constexpr double kEqual = 1e-9;
        if (best - worst > kEqual && eligible(row) &&
            best - *table_.rows[row].cells[column].value < kEqual) {
          table_.rows[row].cells[column].best = true;
        }
      }
    }
  }
}

void TableBuilder::add_notes() {
  if (any_partial_) {
    table_.notes.push_back(
        "(k/n): only k of the n samples that other rows have; not comparable, left out of means "
        "and of the best.");
  }
  if (any_refused_) {
    table_.notes.push_back(fmt::format(
        "{}: samples are missing; a mean without them would not be comparable.", kMissing));
  }
  if (any_saturated_) {
    table_.notes.push_back("± 0.0: every sample scored the same; the interval cannot say more.");
  }
  if (options_.equal_samples) {
    table_.notes.push_back("Only samples that every row has.");
  }
  constexpr size_t kMaxReasons = 8;
  size_t shown = 0;
  for (const auto& [failure, count] : group_.failures) {
    if (++shown > kMaxReasons) {
      table_.notes.push_back(fmt::format("... and {} more reasons; SELECT * FROM failures",
                                         group_.failures.size() - kMaxReasons));
      break;
    }
    table_.notes.push_back(fmt::format(
        "{}: {} cell{} of {}: {}", cell_status_text(failure.status), count, count == 1 ? "" : "s",
        index_.label(Field::kMethod, failure.method), failure.reason));
  }
}

}  // namespace

absl::StatusOr<std::vector<Table>> score_tables(const ScoreData& data,
                                                const ScoreTableOptions& options) {
  if (options.rows.empty()) {
    return invalid_argument("a table needs at least one field as rows");
  }
  for (size_t i = 0; i < options.rows.size(); ++i) {
    const bool twice = std::count(options.rows.begin(), options.rows.end(), options.rows[i]) > 1;
    if (options.rows[i] == options.columns || twice) {
      return invalid_argument("the field {} stands twice in rows and columns",
                              field_name(options.rows[i]));
    }
  }
  const FieldIndex index(data);
  std::vector<Table> tables;
  for (const TableGroup& group : group_scores(data, index, options)) {
    tables.push_back(TableBuilder(data, index, options, group).build());
  }
  return tables;
}

}  // namespace kvlab
