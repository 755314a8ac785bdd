#include "results/score_data.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <tuple>

#include "harness/base/status.h"

namespace kvlab {
namespace {

using IdMap = absl::flat_hash_map<int64_t, int32_t>;

absl::Status load_settings(const Database& db, const std::string& table,
                           std::vector<StoredSetting>& settings, IdMap& ids) {
  KVLAB_ASSIGN_OR_RETURN(
      Statement select,
      db.prepare(fmt::format("SELECT id, name, label, json FROM {} ORDER BY id", table)));
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      return absl::OkStatus();
    }
    StoredSetting setting{.name = select.text(1), .label = select.text(2), .json = {}};
    KVLAB_ASSIGN_OR_RETURN(
        setting.json, parse_json(select.text_view(3), fmt::format("{}, {} {}", db.path().string(),
                                                                  table, select.int64(0))));
    ids.emplace(select.int64(0), static_cast<int32_t>(settings.size()));
    settings.push_back(std::move(setting));
  }
}

absl::Status load_samples(const Database& db, bool with_extra, ScoreData& data, IdMap& ids) {
  KVLAB_ASSIGN_OR_RETURN(
      Statement select,
      db.prepare(fmt::format("SELECT id, benchmark, dataset, sample_key, task, length, "
                             "sample_index{} FROM samples ORDER BY id",
                             with_extra ? ", extra" : "")));
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      return absl::OkStatus();
    }
    StoredSample sample{.benchmark = select.text(1),
                        .dataset = select.text(2),
                        .key = select.text(3),
                        .task = select.text(4),
                        .length = select.int64(5),
                        .index = select.int64(6),
                        .extra = {}};
    if (with_extra) {
      KVLAB_ASSIGN_OR_RETURN(
          sample.extra, parse_json(select.text_view(7),
                                   fmt::format("{}, sample {}", db.path().string(), sample.key),
                                   {.refuse_duplicate_keys = false}));
    }
    ids.emplace(select.int64(0), static_cast<int32_t>(data.samples.size()));
    data.samples.push_back(std::move(sample));
  }
}

absl::Status unknown_id(const Database& db, std::string_view table, int64_t id) {
  return data_loss("{}: row {} of {} names rows that do not exist", db.path().string(), id, table);
}

absl::Status load_prompts(const Database& db, const IdMap& samples, const IdMap& models,
                          const IdMap& protocols, ScoreData& data, IdMap& ids) {
  KVLAB_ASSIGN_OR_RETURN(Statement select,
                         db.prepare("SELECT id, sample_id, model_id, protocol_id, prompt_tokens "
                                    "FROM prompts ORDER BY id"));
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      return absl::OkStatus();
    }
    const auto sample = samples.find(select.int64(1));
    const auto model = models.find(select.int64(2));
    const auto protocol = protocols.find(select.int64(3));
    if (sample == samples.end() || model == models.end() || protocol == protocols.end()) {
      return unknown_id(db, "prompts", select.int64(0));
    }
    ids.emplace(select.int64(0), static_cast<int32_t>(data.prompts.size()));
    data.prompts.push_back({sample->second, model->second, protocol->second, select.int64(4)});
  }
}

// Few distinct texts, met a million times: a small list beats a map of strings.
class Interner final {
 public:
  explicit Interner(std::vector<std::string>& texts) : texts_(texts) {}
  int16_t intern(std::string_view text) {
    if (last_ >= 0 && texts_[static_cast<size_t>(last_)] == text) {
      return last_;
    }
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (texts_[i] == text) {
        return last_ = static_cast<int16_t>(i);
      }
    }
    texts_.emplace_back(text);
    return last_ = static_cast<int16_t>(texts_.size() - 1);
  }

 private:
  std::vector<std::string>& texts_;
  int16_t last_ = -1;
};

absl::Status load_cells(const Database& db, const IdMap& prompts, const IdMap& methods,
                        ScoreData& data) {
  // The columns of the covering index results_for_reports, in its order.
  KVLAB_ASSIGN_OR_RETURN(Statement select,
                         db.prepare("SELECT id, prompt_id, method_id, budget, question_aware, "
                                    "status, score, metric FROM results "
                                    "ORDER BY prompt_id, method_id, budget, question_aware"));
  Interner budgets(data.budgets);
  Interner metrics(data.metrics);
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      return absl::OkStatus();
    }
    const auto prompt = prompts.find(select.int64(1));
    const auto method = methods.find(select.int64(2));
    if (prompt == prompts.end() || method == methods.end()) {
      return unknown_id(db, "results", select.int64(0));
    }
    ScoreData::Cell cell{.row_id = select.int64(0),
                         .score = 0,
                         .prompt = prompt->second,
                         .method = method->second,
                         .budget = budgets.intern(select.text_view(3)),
                         .metric = -1,
                         .status = parse_cell_status(select.text_view(5)),
                         .question_aware = select.int64(4) != 0};
    if (cell.status == CellStatus::kOk) {
      cell.score = select.real(6);
      cell.metric = metrics.intern(select.text_view(7));
    }
    if (data.budgets.size() > std::numeric_limits<int16_t>::max() ||
        data.metrics.size() > std::numeric_limits<int16_t>::max()) {
      return invalid_argument("{}: too many budgets or metrics", db.path().string());
    }
    data.cells.push_back(cell);
  }
}

absl::Status load_reasons(const Database& db, ScoreData& data) {
  KVLAB_ASSIGN_OR_RETURN(Statement select,
                         db.prepare("SELECT id, reason FROM results WHERE status <> 'ok'"));
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      return absl::OkStatus();
    }
    data.reasons.emplace(select.int64(0), select.text(1));
  }
}

void sort_budgets(ScoreData& data) {
  std::vector<int16_t> order(data.budgets.size());
  std::iota(order.begin(), order.end(), static_cast<int16_t>(0));
  std::sort(order.begin(), order.end(), [&](int16_t a, int16_t b) {
    return budget_before(data.budgets[static_cast<size_t>(a)],
                         data.budgets[static_cast<size_t>(b)]);
  });
  std::vector<int16_t> rank(order.size());
  std::vector<std::string> sorted;
  for (size_t i = 0; i < order.size(); ++i) {
    rank[static_cast<size_t>(order[i])] = static_cast<int16_t>(i);
    sorted.push_back(data.budgets[static_cast<size_t>(order[i])]);
  }
  data.budgets = std::move(sorted);
  for (ScoreData::Cell& cell : data.cells) {
    cell.budget = rank[static_cast<size_t>(cell.budget)];
  }
}

}  // namespace

bool budget_before(const std::string& a, const std::string& b) {
  const auto rank = [](const std::string& budget) {
    const int kind = budget == "full" ? 0 : budget.ends_with('%') ? 2 : 1;
    return std::tuple(kind, std::strtod(budget.c_str(), nullptr), budget);
  };
  return rank(a) < rank(b);
}

absl::StatusOr<ScoreData> load_scores(const Database& db, bool with_extra) {
  ScoreData data;
  IdMap models, protocols, methods, samples, prompts;
  KVLAB_RETURN_IF_ERROR(load_settings(db, "models", data.models, models));
  KVLAB_RETURN_IF_ERROR(load_settings(db, "protocols", data.protocols, protocols));
  KVLAB_RETURN_IF_ERROR(load_settings(db, "methods", data.methods, methods));
  KVLAB_RETURN_IF_ERROR(load_samples(db, with_extra, data, samples));
  KVLAB_RETURN_IF_ERROR(load_prompts(db, samples, models, protocols, data, prompts));
  KVLAB_RETURN_IF_ERROR(load_cells(db, prompts, methods, data));
  KVLAB_RETURN_IF_ERROR(load_reasons(db, data));
  sort_budgets(data);
  return data;
}

}  // namespace kvlab
