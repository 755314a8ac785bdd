#include "reports/fields.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "harness/base/status.h"
#include "reports/escape.h"

namespace kvlab {
namespace {

constexpr std::string_view kFieldNames[kNumFields] = {"benchmark", "model",          "protocol",
                                                      "dataset",   "question_aware", "length",
                                                      "task",      "method",         "budget"};

// {"a": {"b": 1}} as {"/a/b": "1"}.
std::map<std::string, std::string> flat_values(const Json& json) {
  std::map<std::string, std::string> values;
  const Json flattened = json.flatten();
  if (flattened.is_object()) {
    for (const auto& [key, value] : flattened.items()) {
      values[key.empty() ? key : key.substr(1)] =
          truncate_to_width(value.is_string() ? value.get<std::string>() : dump_json(value), 40);
    }
  }
  return values;
}

// By name, with numbers in it by value: task_2 before task_10.
bool natural_before(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      size_t end_a = i, end_b = j;
      while (end_a < a.size() && digit(a[end_a])) {
        ++end_a;
      }
      while (end_b < b.size() && digit(b[end_b])) {
        ++end_b;
      }
      if (end_a - i != end_b - j) {
        return end_a - i < end_b - j;
      }
      const int order = a.compare(i, end_a - i, b, j, end_b - j);
      if (order != 0) {
        return order < 0;
      }
      i = end_a;
      j = end_b;
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

std::vector<std::string> ordered_tasks(const ScoreData& data) {
  std::set<std::string> distinct;
  for (const StoredSample& sample : data.samples) {
    distinct.insert(sample.task);
  }
  std::vector<std::string> tasks(distinct.begin(), distinct.end());
  const auto rank = [&](const std::string& task) {
    return std::find(data.task_order.begin(), data.task_order.end(), task) -
           data.task_order.begin();
  };
  std::sort(tasks.begin(), tasks.end(), [&](const std::string& a, const std::string& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : natural_before(a, b);
  });
  return tasks;
}

std::string join(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    out += (out.empty() ? "" : ", ") + plain_line(part);
  }
  return out;
}

std::optional<double> as_number(std::string_view text) {
  const bool percent = text.ends_with('%');
  text.remove_suffix(percent ? 1 : 0);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

bool compares(double a, TableFilter::Operator op, double b) {
  switch (op) {
    case TableFilter::Operator::kLess:
      return a < b;
    case TableFilter::Operator::kLessEqual:
      return a <= b;
    case TableFilter::Operator::kGreater:
      return a > b;
    case TableFilter::Operator::kGreaterEqual:
      return a >= b;
    default:
      return false;
  }
}

bool is_equality(TableFilter::Operator op) {
  return op == TableFilter::Operator::kEqual || op == TableFilter::Operator::kNotEqual;
}

// Whether a cell with this text (and number, where it has one) passes.
bool passes(const TableFilter& filter, const std::string& text) {
  if (is_equality(filter.op)) {
    const bool listed =
        std::find(filter.values.begin(), filter.values.end(), text) != filter.values.end();
    return listed == (filter.op == TableFilter::Operator::kEqual);
  }
  const auto number = as_number(text);
  // 10% and 64 cannot be compared.
  return number && text.ends_with('%') == filter.values.front().ends_with('%') &&
         compares(*number, filter.op, *as_number(filter.values.front()));
}

}  // namespace

std::string_view field_name(Field field) { return kFieldNames[static_cast<size_t>(field)]; }

absl::StatusOr<Field> parse_field(std::string_view name) {
  for (size_t i = 0; i < kNumFields; ++i) {
    if (kFieldNames[i] == name) {
      return static_cast<Field>(i);
    }
  }
  return invalid_argument("unknown field \"{}\"; fields: {}", plain_line(name),
                          fmt::join(kFieldNames, ", "));
}

std::vector<std::string> unique_labels(const std::vector<StoredSetting>& settings) {
  std::map<std::string, std::vector<size_t>> same;
  for (size_t i = 0; i < settings.size(); ++i) {
    same[settings[i].label].push_back(i);
  }
  std::vector<std::string> labels(settings.size());
  for (const auto& [label, members] : same) {
    if (members.size() == 1) {
      labels[members.front()] = label;
      continue;
    }
    std::vector<std::map<std::string, std::string>> values;
    std::map<std::string, std::set<std::string>> seen;
    for (const size_t i : members) {
      values.push_back(flat_values(settings[i].json));
      values.back()["name"] = settings[i].name;
    }
    for (const auto& one : values) {
      for (const auto& [key, ignored] : one) {
        for (const auto& other : values) {
          const auto it = other.find(key);
          seen[key].insert(it == other.end() ? "unset" : it->second);
        }
      }
    }
    std::set<std::string> used;
    for (size_t m = 0; m < members.size(); ++m) {
      std::vector<std::string> parts;
      for (const auto& [key, distinct] : seen) {
        if (distinct.size() > 1) {
          const auto it = values[m].find(key);
          parts.push_back(fmt::format("{}={}", key, it == values[m].end() ? "unset" : it->second));
        }
      }
      std::string text = fmt::format("{} ({})", label, fmt::join(parts, ", "));
      for (int n = 2; !used.insert(text).second; ++n) {
        text = fmt::format("{} ({}) #{}", label, fmt::join(parts, ", "), n);
      }
      labels[members[m]] = text;
    }
  }
  return labels;
}

FieldIndex::FieldIndex(const ScoreData& data) {
  // Settings that no cell uses (filtered out) must not make labels longer.
  std::vector<char> method_used(data.methods.size(), 0);
  std::vector<char> prompt_used(data.prompts.size(), 0);
  for (const auto& cell : data.cells) {
    method_used[static_cast<size_t>(cell.method)] = 1;
    prompt_used[static_cast<size_t>(cell.prompt)] = 1;
  }
  std::vector<char> model_used(data.models.size(), 0);
  std::vector<char> protocol_used(data.protocols.size(), 0);
  for (size_t i = 0; i < data.prompts.size(); ++i) {
    if (prompt_used[i] != 0) {
      model_used[static_cast<size_t>(data.prompts[i].model)] = 1;
      protocol_used[static_cast<size_t>(data.prompts[i].protocol)] = 1;
    }
  }
  const auto label_used = [&](Field field, const std::vector<StoredSetting>& settings,
                              const std::vector<char>& used) {
    std::vector<StoredSetting> kept;
    for (size_t i = 0; i < settings.size(); ++i) {
      if (used[i] != 0) {
        kept.push_back(settings[i]);
      }
    }
    const std::vector<std::string> unique = unique_labels(kept);
    auto& labels = labels_[static_cast<size_t>(field)];
    size_t next = 0;
    for (size_t i = 0; i < settings.size(); ++i) {
      labels.push_back(used[i] != 0 ? unique[next++] : settings[i].label);
    }
  };
  label_used(Field::kModel, data.models, model_used);
  label_used(Field::kProtocol, data.protocols, protocol_used);
  label_used(Field::kMethod, data.methods, method_used);
  labels_[static_cast<size_t>(Field::kBudget)] = data.budgets;
  labels_[static_cast<size_t>(Field::kQuestionAware)] = {"no", "yes"};

  std::set<int64_t> lengths;
  for (const StoredSample& sample : data.samples) {
    lengths.insert(sample.length);
  }
  std::map<int64_t, int32_t> length_codes;
  for (const int64_t length : lengths) {
    length_codes[length] = static_cast<int32_t>(length_codes.size());
    labels_[static_cast<size_t>(Field::kLength)].push_back(length == 0 ? "any"
                                                                       : std::to_string(length));
  }
  absl::flat_hash_map<std::string, int32_t> maps[3];
  const auto intern = [&](size_t map, Field field, const std::string& text) {
    auto& labels = labels_[static_cast<size_t>(field)];
    const auto [it, added] = maps[map].emplace(text, static_cast<int32_t>(labels.size()));
    if (added) {
      labels.push_back(text);
    }
    return it->second;
  };
  for (const std::string& task : ordered_tasks(data)) {
    intern(2, Field::kTask, task);
  }
  std::vector<FieldCodes> sample_codes;
  for (const StoredSample& sample : data.samples) {
    FieldCodes codes;
    codes.fill(-1);
    code(codes, Field::kBenchmark) = intern(0, Field::kBenchmark, sample.benchmark);
    code(codes, Field::kDataset) = intern(1, Field::kDataset, sample.dataset);
    code(codes, Field::kTask) = intern(2, Field::kTask, sample.task);
    code(codes, Field::kLength) = length_codes[sample.length];
    sample_codes.push_back(codes);
  }
  for (const ScoreData::Prompt& prompt : data.prompts) {
    FieldCodes codes = sample_codes[static_cast<size_t>(prompt.sample)];
    code(codes, Field::kModel) = prompt.model;
    code(codes, Field::kProtocol) = prompt.protocol;
    prompt_codes_.push_back(codes);
  }
}

absl::StatusOr<TableFilter> parse_table_filter(std::string_view text) {
  using Operator = TableFilter::Operator;
  struct Spelling {
    std::string_view text;
    Operator op;
  };
  constexpr Spelling kSpellings[] = {{"!=", Operator::kNotEqual},     {"<=", Operator::kLessEqual},
                                     {">=", Operator::kGreaterEqual}, {"=", Operator::kEqual},
                                     {"<", Operator::kLess},          {">", Operator::kGreater}};
  const size_t at = text.find_first_of("!<>=");
  for (const Spelling& spelling : kSpellings) {
    if (at == std::string_view::npos || text.substr(at, spelling.text.size()) != spelling.text) {
      continue;
    }
    TableFilter filter;
    filter.op = spelling.op;
    const std::string_view name = text.substr(0, at);
    filter.by_index = name == "index";
    if (!filter.by_index) {
      KVLAB_ASSIGN_OR_RETURN(filter.field, parse_field(name));
    }
    std::string_view rest = text.substr(at + spelling.text.size());
    while (true) {
      const size_t comma = rest.find(',');
      filter.values.emplace_back(rest.substr(0, comma));
      if (comma == std::string_view::npos) {
        break;
      }
      rest.remove_prefix(comma + 1);
    }
    if (!is_equality(filter.op)) {
      const bool ordered =
          filter.by_index || filter.field == Field::kLength || filter.field == Field::kBudget;
      if (!ordered || filter.values.size() != 1 || !as_number(filter.values.front())) {
        return invalid_argument(
            "filter \"{}\": {} needs one number, and works on length, budget and index only",
            plain_line(text), spelling.text);
      }
    }
    return filter;
  }
  return invalid_argument(
      "filter \"{}\": expected field=value, e.g. task=vt,fwe or length<=4096; fields: {}, index",
      plain_line(text), fmt::join(kFieldNames, ", "));
}

absl::Status apply_filters(const std::vector<TableFilter>& filters, ScoreData& data) {
  for (const TableFilter& filter : filters) {
    const FieldIndex index(data);
    std::vector<char> pass;
    if (!filter.by_index) {
      const std::vector<std::string>& labels = index.labels(filter.field);
      for (const std::string& value : filter.values) {
        const bool known = std::find(labels.begin(), labels.end(), value) != labels.end();
        // A method or model may also be named without what tells it from its namesakes.
        const bool base = std::any_of(labels.begin(), labels.end(), [&](const std::string& label) {
          return label.starts_with(value + " (");
        });
        if (is_equality(filter.op) && !known && !base) {
          return invalid_argument("no cell has {} \"{}\"; there are: {}", field_name(filter.field),
                                  plain_line(value), join(labels));
        }
      }
      for (const std::string& label : labels) {
        const std::string base = label.substr(0, label.find(" ("));
        bool ok = passes(filter, label);
        if (is_equality(filter.op) && base != label) {
          const bool equal = filter.op == TableFilter::Operator::kEqual;
          ok = equal ? ok || passes(filter, base) : ok && passes(filter, base);
        }
        pass.push_back(ok || (filter.field == Field::kBudget && label == "full") ? 1 : 0);
      }
    }
    std::erase_if(data.cells, [&](const ScoreData::Cell& cell) {
      if (filter.by_index) {
        const auto& sample = data.samples[static_cast<size_t>(
            data.prompts[static_cast<size_t>(cell.prompt)].sample)];
        return !passes(filter, std::to_string(sample.index));
      }
      return pass[static_cast<size_t>(code(index.codes(cell), filter.field))] == 0;
    });
  }
  return absl::OkStatus();
}

}  // namespace kvlab
