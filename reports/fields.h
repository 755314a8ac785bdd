// The fields that tables are cut by: names for the command line, and for every cell a small code
// and a label.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "results/score_data.h"

namespace kvlab {

enum class Field {
  kBenchmark,
  kModel,
  kProtocol,
  kDataset,
  kQuestionAware,
  kLength,
  kTask,
  kMethod,
  kBudget,
};
constexpr size_t kNumFields = 9;

std::string_view field_name(Field field);
// Unknown names are an error that lists the known ones.
absl::StatusOr<Field> parse_field(std::string_view name);

// One code for each field, -1 where a field plays no part: a key that hashes.
using FieldCodes = std::array<int32_t, kNumFields>;
inline int32_t& code(FieldCodes& codes, Field field) { return codes[static_cast<size_t>(field)]; }
inline int32_t code(const FieldCodes& codes, Field field) {
  return codes[static_cast<size_t>(field)];
}

// Codes of every cell of a ScoreData, ordered as tables show them: tasks as ScoreData::task_order
// says and then by name (so that merged shards look like one run), methods as they were first
// stored, lengths and budgets by size.
class FieldIndex final {
 public:
  explicit FieldIndex(const ScoreData& data);

  FieldCodes codes(const ScoreData::Cell& cell) const {
    FieldCodes codes = prompt_codes_[static_cast<size_t>(cell.prompt)];
    code(codes, Field::kQuestionAware) = cell.question_aware ? 1 : 0;
    code(codes, Field::kMethod) = cell.method;
    code(codes, Field::kBudget) = cell.budget;
    return codes;
  }
  const std::string& label(Field field, int32_t value) const {
    return labels_[static_cast<size_t>(field)][static_cast<size_t>(value)];
  }
  const std::vector<std::string>& labels(Field field) const {
    return labels_[static_cast<size_t>(field)];
  }

 private:
  std::array<std::vector<std::string>, kNumFields> labels_;
  std::vector<FieldCodes> prompt_codes_;
};

// Labels that tell settings apart by those values only that differ among equally labelled ones:
// "snapkv (window=16)".
std::vector<std::string> unique_labels(const std::vector<StoredSetting>& settings);

// field=value[,value...], field!=..., and for length, budget and index also <, <=, >, >=.
struct TableFilter {
  enum class Operator { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
  bool by_index = false;  // the sample's index within its task, instead of `field`
  Field field = Field::kTask;
  Operator op = Operator::kEqual;
  std::vector<std::string> values;
};
absl::StatusOr<TableFilter> parse_table_filter(std::string_view text);

// The data with those cells only that pass every filter. A value that no cell has is an error that
// lists the values there are. The full cache passes every filter on the budget.
absl::Status apply_filters(const std::vector<TableFilter>& filters, ScoreData& data);

}  // namespace kvlab
