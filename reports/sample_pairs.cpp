#include "reports/sample_pairs.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace kvlab {
namespace {

using Cell = ScoreData::Cell;

// Cells of one prompt, in both methods, paired by question handling and budget.
void pair_cells(const std::vector<const Cell*>& baseline, const std::vector<const Cell*>& candidate,
                int32_t full, const FieldIndex& index, std::map<FieldCodes, SamplePairs>& groups) {
  for (const bool aware : {false, true}) {
    std::map<int32_t, const Cell*> b, c;  // by budget
    std::set<int32_t> budgets;
    const auto collect = [&](const std::vector<const Cell*>& cells,
                             std::map<int32_t, const Cell*>& by_budget) {
      for (const Cell* cell : cells) {
        if (cell->question_aware == aware) {
          by_budget[cell->budget] = cell;
          budgets.insert(cell->budget);
        }
      }
    };
    collect(baseline, b);
    collect(candidate, c);
    if (budgets.size() > 1) {
      budgets.erase(full);  // the full cache stands beside every budget
    }
    for (const int32_t budget : budgets) {
      const auto find = [&](const std::map<int32_t, const Cell*>& cells) -> const Cell* {
        const auto exact = cells.find(budget);
        const auto it = exact != cells.end() ? exact : cells.find(full);
        return it == cells.end() ? nullptr : it->second;
      };
      const SamplePair pair{find(b), find(c)};
      if (pair.baseline == nullptr && pair.candidate == nullptr) {
        continue;
      }
      FieldCodes key = index.codes(pair.baseline != nullptr ? *pair.baseline : *pair.candidate);
      code(key, Field::kBudget) = budget;
      const int32_t task = code(key, Field::kTask);
      code(key, Field::kTask) = -1;
      code(key, Field::kMethod) = -1;
      SamplePairs& group = groups[key];
      std::vector<SamplePair>& pairs = group.tasks[task];
      if (pair.baseline != nullptr && pair.baseline->status == CellStatus::kOk &&
          pair.candidate != nullptr && pair.candidate->status == CellStatus::kOk) {
        pairs.push_back(pair);
      } else {
        ++group.unmatched;
      }
    }
  }
}

// A data set in the key splits tasks apart (RULER has one for each); it matters only where one task
// and length has two.
std::map<FieldCodes, SamplePairs> join_datasets(std::map<FieldCodes, SamplePairs> groups) {
  std::map<FieldCodes, std::map<int32_t, int>> datasets;  // key without data set: task, count
  const auto without = [](FieldCodes key) {
    code(key, Field::kDataset) = -1;
    return key;
  };
  for (const auto& [key, group] : groups) {
    for (const auto& [task, pairs] : group.tasks) {
      ++datasets[without(key)][task];
    }
  }
  std::map<FieldCodes, SamplePairs> joined;
  for (auto& [key, group] : groups) {
    const auto& counts = datasets[without(key)];
    const bool split = std::any_of(counts.begin(), counts.end(),
                                   [](const auto& count) { return count.second > 1; });
    SamplePairs& target = joined[split ? key : without(key)];
    for (auto& [task, pairs] : group.tasks) {
      target.tasks[task] = std::move(pairs);
    }
    target.unmatched += group.unmatched;
  }
  return joined;
}

// The full cache stands beside every budget: a task it ran that the other method lacks at a budget
// is missing from that comparison.
void spread_tasks(int32_t full, std::map<FieldCodes, SamplePairs>& groups) {
  const auto of_any_budget = [full](FieldCodes key) {
    code(key, Field::kBudget) = full;
    return key;
  };
  std::map<FieldCodes, std::map<int32_t, size_t>> tasks;  // with the most pairs of a budget
  for (const auto& [key, group] : groups) {
    for (const auto& [task, pairs] : group.tasks) {
      size_t& most = tasks[of_any_budget(key)][task];
      most = std::max(most, pairs.size());
    }
  }
  for (auto& [key, group] : groups) {
    for (const auto& [task, pairs] : tasks[of_any_budget(key)]) {
      if (!group.tasks.contains(task)) {
        group.tasks[task];
        group.unmatched += static_cast<int64_t>(pairs);
      }
    }
    const auto alone = groups.find(of_any_budget(key));  // prompts where only the full cache ran
    if (alone != groups.end() && alone->first != key) {
      group.unmatched += alone->second.unmatched;
    }
  }
}

// In an order that does not depend on when rows were stored: resampling draws by position.
void sort_pairs(const ScoreData& data, std::map<FieldCodes, SamplePairs>& groups) {
  const auto place = [&](const SamplePair& pair) {
    const ScoreData::Prompt& prompt = data.prompts[static_cast<size_t>(pair.baseline->prompt)];
    const StoredSample& sample = data.samples[static_cast<size_t>(prompt.sample)];
    return std::tie(sample.index, sample.key, sample.dataset);
  };
  for (auto& [key, group] : groups) {
    for (auto& [task, pairs] : group.tasks) {
      std::sort(pairs.begin(), pairs.end(),
                [&](const SamplePair& a, const SamplePair& b) { return place(a) < place(b); });
    }
  }
}

}  // namespace

std::map<FieldCodes, SamplePairs> pair_samples(const ScoreData& data, const FieldIndex& index,
                                               int32_t baseline, int32_t candidate) {
  const auto full = static_cast<int32_t>(
      std::find(data.budgets.begin(), data.budgets.end(), "full") - data.budgets.begin());
  std::map<FieldCodes, SamplePairs> groups;
  std::vector<const Cell*> baseline_cells, candidate_cells;
  for (size_t begin = 0; begin < data.cells.size();) {
    size_t end = begin;
    baseline_cells.clear();
    candidate_cells.clear();
    for (; end < data.cells.size() && data.cells[end].prompt == data.cells[begin].prompt; ++end) {
      if (data.cells[end].method == baseline) {
        baseline_cells.push_back(&data.cells[end]);
      } else if (data.cells[end].method == candidate) {
        candidate_cells.push_back(&data.cells[end]);
      }
    }
    pair_cells(baseline_cells, candidate_cells, full, index, groups);
    begin = end;
  }
  groups = join_datasets(std::move(groups));
  const auto only_full = [&](int32_t method) {
    return std::all_of(data.cells.begin(), data.cells.end(), [&](const Cell& cell) {
      return cell.method != method || cell.budget == full;
    });
  };
  if (only_full(baseline) || only_full(candidate)) {
    spread_tasks(full, groups);
  }
  std::erase_if(groups, [](const auto& group) {
    return std::all_of(group.second.tasks.begin(), group.second.tasks.end(),
                       [](const auto& task) { return task.second.empty(); });
  });
  sort_pairs(data, groups);
  return groups;
}

}  // namespace kvlab
