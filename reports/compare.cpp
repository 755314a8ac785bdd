#include "reports/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "harness/base/status.h"
#include "reports/escape.h"
#include "reports/paired.h"
#include "reports/sample_pairs.h"
#include "reports/statistics.h"

namespace kvlab {
namespace {

// Work is bounded for huge databases: fewer resamples, and the table says how many.
constexpr int64_t kMaxDraws = 400'000'000;
constexpr int64_t kMinResamples = 1000;

// The resampling's seed for one line of a table: a task's numbers do not depend on which other
// tasks are there (FNV-1a, the same everywhere).
uint64_t line_seed(uint64_t seed, std::string_view name) {
  uint64_t hash = 14695981039346656037U ^ seed;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  return hash;
}

constexpr size_t kColumns = 8;

absl::StatusOr<int32_t> find_method(const ScoreData& data, const FieldIndex& index,
                                    const std::string& name) {
  std::vector<char> has_cells(data.methods.size());  // others may bear the name too
  for (const ScoreData::Cell& cell : data.cells) {
    has_cells[static_cast<size_t>(cell.method)] = 1;
  }
  std::vector<int32_t> by_name;
  std::string known;
  for (size_t i = 0; i < data.methods.size(); ++i) {
    if (has_cells[i] == 0) {
      continue;
    }
    const std::string& label = index.label(Field::kMethod, static_cast<int32_t>(i));
    if (label == name) {
      return static_cast<int32_t>(i);
    }
    if (data.methods[i].name == name || data.methods[i].label == name) {
      by_name.push_back(static_cast<int32_t>(i));
    }
    known += (known.empty() ? "" : ", ") + plain_line(label);
  }
  if (by_name.size() == 1) {
    return by_name.front();
  }
  if (by_name.empty()) {
    return not_found("no method \"{}\" in the database; there are: {}", plain_line(name), known);
  }
  std::string choices;
  for (const int32_t method : by_name) {
    choices += fmt::format("{}\"{}\"", choices.empty() ? "" : ", ",
                           plain_line(index.label(Field::kMethod, method)));
  }
  return invalid_argument("method \"{}\" stands for several: {}", plain_line(name), choices);
}

std::string p_text(double p) { return p < 0.0001 ? "<0.0001" : fmt::format("{:.4f}", p); }

TableCell number_cell(std::string text, double value) {
  TableCell cell;
  cell.text = std::move(text);
  cell.value = value;
  return cell;
}

class Comparer final {
 public:
  Comparer(const ScoreData& data, const FieldIndex& index, const CompareOptions& options,
           int32_t baseline, int32_t candidate)
      : data_(data),
        index_(index),
        options_(options),
        baseline_(index.label(Field::kMethod, baseline)),
        candidate_(index.label(Field::kMethod, candidate)) {}

  Comparison compare(const FieldCodes& key, const SamplePairs& group);

 private:
  // What one line of the table says.
  struct Line {
    std::string name;
    std::vector<Moments> baseline, candidate, difference;  // one for each task in it
    std::vector<double> resampled;
    int64_t wins = 0, ties = 0, losses = 0;
    double p = 1;
  };
  TableRow row(const Line& line, std::optional<double> holm_p) const;
  TableRow missing_row(const std::string& name) const;
  Line task_line(int32_t task, const std::vector<SamplePair>& pairs,
                 std::vector<double>& deltas) const;
  void add_notes(const SamplePairs& group, Table& table) const;
  void describe(const FieldCodes& key, Table& table) const;
  void add_samples(const FieldCodes& key, const SamplePairs& group, Comparison& comparison) const;

  const ScoreData& data_;
  const FieldIndex& index_;
  const CompareOptions& options_;
  std::string baseline_, candidate_;
  int64_t resamples_ = 0;
};

TableRow Comparer::row(const Line& line, std::optional<double> holm_p) const {
  const Estimate baseline = mean_of_means(line.baseline);
  const Estimate candidate = mean_of_means(line.candidate);
  const Estimate difference = line.difference.size() == 1 ? t_interval(line.difference.front())
                                                          : mean_of_means(line.difference);
  const auto [low, high] = percentile_interval(line.resampled);
  TableRow out;
  out.headers = {line.name};
  out.cells.push_back(
      number_cell(fmt::format("{}", difference.count), static_cast<double>(difference.count)));
  out.cells.push_back(number_cell(fmt::format("{:.1f}", baseline.mean), baseline.mean));
  out.cells.push_back(number_cell(fmt::format("{:.1f}", candidate.mean), candidate.mean));
  // One sample of a task says nothing about the others.
  const bool has_interval = std::all_of(line.difference.begin(), line.difference.end(),
                                        [](const Moments& of_task) { return of_task.count() > 1; });
  TableCell delta = number_cell(fmt::format("{:+.1f}", difference.mean), difference.mean);
  if (has_interval) {
    delta.text += fmt::format(" [{:+.1f}, {:+.1f}]", low, high);
    delta.low = low;
    delta.high = high;
  }
  delta.count = delta.expected = difference.count;
  out.cells.push_back(std::move(delta));
  TableCell record;
  record.text = fmt::format("{}/{}/{}", line.wins, line.ties, line.losses);
  out.cells.push_back(std::move(record));
  out.cells.push_back(number_cell(p_text(line.p), line.p));
  out.cells.push_back(holm_p ? number_cell(p_text(*holm_p), *holm_p) : TableCell{.text = kMissing});
  const auto detectable =
      minimal_detectable_difference(difference.standard_error, difference.degrees);
  out.cells.push_back(detectable ? number_cell(fmt::format("{:.1f}", *detectable), *detectable)
                                 : TableCell{.text = kMissing});
  return out;
}

void Comparer::describe(const FieldCodes& key, Table& table) const {
  table.title = fmt::format("{} against {}", candidate_, baseline_);
  for (size_t i = 0; i < kNumFields; ++i) {
    const auto field = static_cast<Field>(i);
    if (key[i] < 0) {
      continue;
    }
    const std::string& label = index_.label(field, key[i]);
    table.attributes.emplace_back(field_name(field), label);
    const bool plain = (field == Field::kQuestionAware && label == "yes") ||
                       (field == Field::kLength && label == "any");
    if (!plain) {
      table.title += field == Field::kBenchmark || field == Field::kModel
                         ? fmt::format(", {}", label)
                         : fmt::format(", {} {}", field_name(field), label);
    }
  }
  table.attributes.emplace_back("baseline", baseline_);
  table.attributes.emplace_back("candidate", candidate_);
  table.caption =
      "Scores 0 to 100 on the same samples; difference = candidate - baseline with its 95 % "
      "bootstrap interval";
  table.row_headers = {"task"};
  table.columns = {{"n", "", "samples"},
                   {"baseline", "", "mean score"},
                   {"candidate", "", "mean score"},
                   {"difference", "", "mean difference"},
                   {"win/tie/loss", "", ""},
                   {"p", "", "p-value"},
                   {"p (Holm)", "", "p-value"},
                   {"detectable", "", "minimal detectable difference"}};
}

TableRow Comparer::missing_row(const std::string& name) const {
  TableRow row;
  row.headers = {name};
  row.cells.assign(kColumns, TableCell{.text = kMissing});
  return row;
}

Comparer::Line Comparer::task_line(int32_t task, const std::vector<SamplePair>& pairs,
                                   std::vector<double>& deltas) const {
  ResamplingRandom random(line_seed(options_.seed, index_.label(Field::kTask, task)));
  Line line{.name = index_.label(Field::kTask, task),
            .baseline = {{}},
            .candidate = {{}},
            .difference = {{}},
            .resampled = {}};
  for (const SamplePair& pair : pairs) {
    const double delta = pair.difference();
    line.baseline[0].add(pair.baseline->score);
    line.candidate[0].add(pair.candidate->score);
    line.difference[0].add(delta);
    deltas.push_back(delta);
    ++(delta > 0 ? line.wins : delta < 0 ? line.losses : line.ties);
  }
  line.resampled = bootstrap_means(deltas, resamples_, random);
  line.p = permutation_p(std::span(&deltas, 1), resamples_, random);
  return line;
}

Comparison Comparer::compare(const FieldCodes& key, const SamplePairs& group) {
  Comparison comparison;
  describe(key, comparison.table);
  int64_t pairs = 0;
  for (const auto& [task, members] : group.tasks) {
    pairs += static_cast<int64_t>(members.size());
  }
  resamples_ = std::max(kMinResamples,
                        std::min(options_.resamples, kMaxDraws / std::max<int64_t>(1, pairs)));

  Line all{.name = "", .baseline = {}, .candidate = {}, .difference = {}, .resampled = {}};
  all.resampled.assign(static_cast<size_t>(resamples_), 0);
  std::vector<std::vector<double>> differences;
  std::vector<Line> lines;
  std::vector<double> p_values;
  for (const auto& [task, members] : group.tasks) {
    if (members.empty()) {
      continue;
    }
    std::vector<double> deltas;
    Line line = task_line(task, members, deltas);
    for (size_t r = 0; r < line.resampled.size(); ++r) {
      all.resampled[r] += line.resampled[r] / static_cast<double>(group.tasks.size());
    }
    all.baseline.push_back(line.baseline[0]);
    all.candidate.push_back(line.candidate[0]);
    all.difference.push_back(line.difference[0]);
    all.wins += line.wins;
    all.ties += line.ties;
    all.losses += line.losses;
    p_values.push_back(line.p);
    differences.push_back(std::move(deltas));
    lines.push_back(std::move(line));
  }
  const std::vector<double> adjusted = holm(p_values);
  size_t next = 0;
  for (const auto& [task, members] : group.tasks) {
    if (members.empty()) {
      comparison.table.rows.push_back(missing_row(index_.label(Field::kTask, task)));
    } else {
      comparison.table.rows.push_back(row(lines[next], adjusted[next]));
      ++next;
    }
  }
  if (group.tasks.size() > 1) {
    all.name = fmt::format("mean of {} tasks", group.tasks.size());
    if (lines.size() == group.tasks.size()) {
      ResamplingRandom random(line_seed(options_.seed, ""));
      all.p = permutation_p(differences, resamples_, random);
      comparison.table.rows.push_back(row(all, std::nullopt));
    } else {
      comparison.table.rows.push_back(missing_row(all.name));
    }
    comparison.table.rows.back().group = 1;
  }
  add_notes(group, comparison.table);
  add_samples(key, group, comparison);
  return comparison;
}

void Comparer::add_notes(const SamplePairs& group, Table& table) const {
  auto& notes = table.notes;
  notes.push_back(fmt::format(
      "Interval: percentile bootstrap over samples within tasks, {} resamples, seed {}.",
      resamples_, options_.seed));
  notes.push_back(fmt::format(
      "p: two-sided sign-flip permutation test of the mean difference (exact with up to {} "
      "differing samples, else {} permutations); Holm's correction over the tasks.",
      kMaxExactPairs, resamples_));
  notes.push_back(
      "detectable: the true difference that this many samples would show with power 0.8 at level "
      "0.05.");
  if (group.unmatched > 0) {
    notes.push_back(fmt::format("Left out: {} sample{} that one of the two has not as ok.",
                                group.unmatched, group.unmatched == 1 ? "" : "s"));
  }
  if (std::any_of(group.tasks.begin(), group.tasks.end(),
                  [](const auto& task) { return task.second.empty(); })) {
    notes.push_back(fmt::format(
        "{}: no sample that both have; a mean without these tasks would not be comparable.",
        kMissing));
  }
}

void Comparer::add_samples(const FieldCodes& key, const SamplePairs& group,
                           Comparison& comparison) const {
  std::vector<SamplePair> differing;
  for (const auto& [task, members] : group.tasks) {
    for (const SamplePair& pair : members) {
      if (pair.difference() != 0) {
        differing.push_back(pair);
      }
    }
  }
  const auto shown = static_cast<std::ptrdiff_t>(
      std::min<int64_t>(options_.examples, static_cast<int64_t>(differing.size())));
  std::stable_sort(differing.begin(), differing.end(),
                   [](const SamplePair& a, const SamplePair& b) {
                     return std::abs(a.difference()) > std::abs(b.difference());
                   });
  for (std::ptrdiff_t i = 0; i < shown; ++i) {
    const SamplePair& pair = differing[static_cast<size_t>(i)];
    const auto& prompt = data_.prompts[static_cast<size_t>(pair.baseline->prompt)];
    const StoredSample& sample = data_.samples[static_cast<size_t>(prompt.sample)];
    comparison.samples.push_back({.baseline_row = pair.baseline->row_id,
                                  .candidate_row = pair.candidate->row_id,
                                  .task = sample.task,
                                  .sample = sample.key,
                                  .budget = index_.label(Field::kBudget, code(key, Field::kBudget)),
                                  .baseline_score = pair.baseline->score,
                                  .candidate_score = pair.candidate->score});
  }
}

struct Methods {
  int32_t baseline, candidate;
};
absl::StatusOr<Methods> find_methods(const ScoreData& data, const FieldIndex& index,
                                     const CompareOptions& options) {
  Methods methods{};
  KVLAB_ASSIGN_OR_RETURN(methods.baseline, find_method(data, index, options.baseline));
  KVLAB_ASSIGN_OR_RETURN(methods.candidate, find_method(data, index, options.candidate));
  if (methods.baseline == methods.candidate) {
    return invalid_argument("baseline and candidate are the same method");
  }
  return methods;
}

}  // namespace

absl::StatusOr<std::vector<Comparison>> compare_methods(const ScoreData& data,
                                                        const CompareOptions& options) {
  if (options.resamples < kMinResamples) {
    return invalid_argument("resamples is {}; an interval needs at least {}", options.resamples,
                            kMinResamples);
  }
  if (options.examples < 0) {
    return invalid_argument("differing is {}; give 0 or more samples to show", options.examples);
  }
  const FieldIndex index(data);
  KVLAB_ASSIGN_OR_RETURN(const Methods methods, find_methods(data, index, options));
  const std::map<FieldCodes, SamplePairs> groups =
      pair_samples(data, index, methods.baseline, methods.candidate);
  if (groups.empty()) {
    return not_found("{} and {} have no sample and budget in common", options.baseline,
                     options.candidate);
  }
  std::vector<Comparison> comparisons;
  Comparer comparer(data, index, options, methods.baseline, methods.candidate);
  for (const auto& [key, group] : groups) {
    comparisons.push_back(comparer.compare(key, group));
  }
  return comparisons;
}

std::vector<std::string> differing_settings(const ScoreData& data, const CompareOptions& options) {
  const FieldIndex index(data);
  const auto methods = find_methods(data, index, options);
  if (!methods.ok()) {
    return {};
  }
  const StoredSetting& a = data.methods[static_cast<size_t>(methods->baseline)];
  const StoredSetting& b = data.methods[static_cast<size_t>(methods->candidate)];
  std::vector<std::string> lines;
  if (a.name != b.name) {
    lines.push_back(fmt::format("method: {} -> {}", a.name, b.name));
  }
  std::map<std::string, std::pair<std::string, std::string>> values;
  // Named, since items() of a temporary would outlive it.
  const Json flat_a = a.json.flatten();
  const Json flat_b = b.json.flatten();
  for (const auto& [key, value] : flat_a.items()) {
    values[key].first = dump_json(value);
  }
  for (const auto& [key, value] : flat_b.items()) {
    values[key].second = dump_json(value);
  }
  for (const auto& [key, pair] : values) {
    if (pair.first != pair.second) {
      const auto text = [](const std::string& value) { return value.empty() ? "unset" : value; };
      lines.push_back(fmt::format("{}: {} -> {}", key.empty() ? key : key.substr(1),
                                  text(pair.first), text(pair.second)));
    }
  }
  return lines;
}

}  // namespace kvlab
