// Which positions of a prompt each method keeps.
#include <algorithm>
#include <map>
#include <optional>

#include "harness/base/status.h"
#include "reports/chart_style.h"
#include "reports/charts.h"
#include "reports/escape.h"
#include "reports/kept_stretches.h"
#include "results/packing.h"

namespace kvlab {
namespace {

constexpr int64_t kMapBins = 96;
constexpr size_t kMaxPanels = 24;

// The prompt whose arms are drawn: its row, and its sample's key.
struct MappedPrompt {
  int64_t id = 0;
  std::string sample;
};
absl::StatusOr<std::optional<MappedPrompt>> find_mapped_prompt(const Database& db,
                                                               const std::string& sample) {
  KVLAB_ASSIGN_OR_RETURN(
      Statement select,
      db.prepare("SELECT r.prompt_id, s.sample_key FROM selections AS k "
                 "JOIN results AS r ON r.id = k.result_id JOIN prompts AS q ON q.id = r.prompt_id "
                 "JOIN samples AS s ON s.id = q.sample_id WHERE ?1 = '' OR s.sample_key = ?1 "
                 "GROUP BY r.prompt_id ORDER BY count(*) DESC, r.prompt_id LIMIT 1"));
  select.bind(1, sample);
  KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
  if (!row) {
    if (!sample.empty()) {
      return not_found("{}: no kept positions are stored for a sample \"{}\"", db.path().string(),
                       plain_line(sample));
    }
    return std::optional<MappedPrompt>();
  }
  return std::optional<MappedPrompt>({select.int64(0), select.text(1)});
}

// Share kept of every stretch of the prompt, for each layer, over its heads.
void add_map(const Selection& selection, const std::string& arm, Json& values) {
  for (size_t layer = 0; layer < selection.kept.size(); ++layer) {
    for (const KeptStretch& stretch :
         kept_stretches(selection.kept[layer], selection.prompt_len, kMapBins)) {
      if (stretch.share > 0) {
        values.push_back({{"arm", arm},
                          {"layer", layer},
                          {"begin", stretch.begin},
                          {"end", stretch.end},
                          {"share", stretch.share}});
      }
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<Chart>> retained_charts(const Database& db, const ScoreData& data,
                                                   const std::string& sample) {
  KVLAB_ASSIGN_OR_RETURN(const auto prompt, find_mapped_prompt(db, sample));
  if (!prompt) {
    return std::vector<Chart>();
  }
  KVLAB_ASSIGN_OR_RETURN(Statement select,
                         db.prepare("SELECT r.id, k.kept FROM results AS r JOIN selections AS k "
                                    "ON k.result_id = r.id WHERE r.prompt_id = ?"));
  select.bind(1, prompt->id);
  std::map<int64_t, Selection> selections;
  while (true) {
    KVLAB_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) {
      break;
    }
    KVLAB_ASSIGN_OR_RETURN(Selection selection, unpack_selection(select.blob(1)));
    selections.emplace(select.int64(0), std::move(selection));
  }
  const FieldIndex index(data);
  std::map<int32_t, std::vector<const ScoreData::Cell*>> by_budget;
  for (const ScoreData::Cell& cell : data.cells) {
    if (selections.contains(cell.row_id) && selections.at(cell.row_id).prompt_len > 0) {
      by_budget[cell.budget].push_back(&cell);
    }
  }
  std::vector<Chart> charts;
  for (const auto& [budget, cells] : by_budget) {
    Json values = Json::array();
    Json order = Json::array();
    for (size_t i = 0; i < std::min(cells.size(), kMaxPanels); ++i) {
      const std::string arm = chart_method(index, cells[i]->method) +
                              (cells[i]->question_aware ? "" : ", question unseen");
      order.push_back(arm);
      add_map(selections.at(cells[i]->row_id), arm, values);
    }
    Chart chart{.name = fmt::format("retained_{}", charts.size() + 1),
                .title = plain_line(fmt::format("{}, budget {}", prompt->sample,
                                                index.label(Field::kBudget, budget))),
                .kind = "Which positions are kept",
                .spec = {}};
    chart.spec = base_spec(chart.title, std::move(values));
    chart.spec["facet"] = {
        {"field", "arm"}, {"type", "nominal"}, {"title", nullptr}, {"sort", std::move(order)}};
    chart.spec["columns"] = 2;
    chart.spec["spec"] = {{"width", 360},
                          {"height", 140},
                          {"mark", "rect"},
                          {"encoding",
                           {{"x",
                             {{"field", "begin"},
                              {"type", "quantitative"},
                              {"title", "prompt position"},
                              {"scale", {{"nice", false}}}}},
                            {"x2", {{"field", "end"}}},
                            {"y", {{"field", "layer"}, {"type", "ordinal"}, {"title", "layer"}}},
                            {"color",
                             {{"field", "share"},
                              {"type", "quantitative"},
                              {"title", "share kept"},
                              {"scale", {{"domain", {0, 1}}, {"scheme", "blues"}}}}}}}};
    charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace kvlab
