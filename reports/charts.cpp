#include "reports/charts.h"

#include <algorithm>
#include <map>
#include <optional>

#include "harness/base/status.h"
#include "reports/efficiency.h"
#include "reports/escape.h"
#include "reports/score_groups.h"
#include "results/packing.h"

namespace kvlab {
namespace {

constexpr int64_t kMapBins = 96;
constexpr size_t kMaxPanels = 24;

Json base_spec(const std::string& title, Json values) {
  return {{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
          {"title", title},
          {"data", {{"values", std::move(values)}}},
          {"config", {{"view", {{"stroke", nullptr}}}, {"axis", {{"labelLimit", 240}}}}}};
}

std::string title_of(const FieldIndex& index, const FieldCodes& key) {
  std::string title;
  for (size_t i = 0; i < kNumFields; ++i) {
    if (key[i] < 0) {
      continue;
    }
    const auto field = static_cast<Field>(i);
    const std::string& label = index.label(field, key[i]);
    if ((field == Field::kQuestionAware && label == "yes") ||
        (field == Field::kLength && label == "any")) {
      continue;
    }
    const bool bare = field == Field::kBenchmark || field == Field::kModel;
    title += (title.empty() ? "" : ", ") +
             (bare ? label : fmt::format("{} {}", field_name(field), label));
  }
  return plain_line(title);
}

Json ordinal(const char* field, const std::string& title, const std::vector<std::string>& order) {
  return {{"field", field},
          {"type", "ordinal"},
          {"title", title},
          {"scale", {{"domain", order}}},
          {"axis", {{"labelAngle", 0}}}};
}

// Lines of mean scores with intervals over the values of one field.
std::vector<Chart> line_charts(const ScoreData& data, Field columns, const std::string& name,
                               const std::string& kind, const std::string& axis) {
  const FieldIndex index(data);
  ScoreTableOptions options;
  options.rows = {Field::kMethod};
  options.columns = columns;
  std::vector<Chart> charts;
  for (const TableGroup& table : group_scores(data, index, options)) {
    if (table.expected.size() < 2) {
      continue;
    }
    std::vector<std::string> order;
    for (const auto& [column, tasks] : table.expected) {
      order.push_back(plain_line(index.label(columns, column)));
    }
    Json values = Json::array();
    for (const auto& [row, cells] : table.rows) {
      for (const auto& [column, cell] : cells) {
        const CellMean mean = cell_mean(cell, table.expected.at(column));
        if (!mean.complete || mean.estimate.count == 0) {
          continue;
        }
        Json value = {
            {"method", plain_line(index.label(Field::kMethod, code(row, Field::kMethod)))},
            {"x", plain_line(index.label(columns, column))},
            {"score", mean.estimate.mean},
            {"n", mean.estimate.count}};
        if (mean.estimate.low) {
          value["low"] = *mean.estimate.low;
          value["high"] = *mean.estimate.high;
        }
        values.push_back(std::move(value));
      }
    }
    if (values.empty()) {
      continue;
    }
    Chart chart{.name = fmt::format("{}_{}", name, charts.size() + 1),
                .title = title_of(index, table.key),
                .kind = kind,
                .spec = {}};
    chart.spec = base_spec(chart.title, std::move(values));
    chart.spec["width"] = 460;
    chart.spec["height"] = 300;
    chart.spec["encoding"] = {{"x", ordinal("x", axis, order)},
                              {"color", {{"field", "method"}, {"type", "nominal"}}}};
    chart.spec["layer"] = {
        {{"mark", {{"type", "line"}, {"point", true}}},
         {"encoding",
          {{"y",
            {{"field", "score"},
             {"type", "quantitative"},
             {"title", "mean score"},
             {"scale", {{"zero", false}}}}}}}},
        {{"mark", {{"type", "rule"}, {"opacity", 0.5}}},
         {"encoding",
          {{"y", {{"field", "low"}, {"type", "quantitative"}}}, {"y2", {{"field", "high"}}}}}}};
    charts.push_back(std::move(chart));
  }
  return charts;
}

std::optional<double> depth_of(const StoredSample& sample) {
  if (sample.extra.is_object() && sample.extra.contains("depth") &&
      sample.extra.at("depth").is_number()) {
    return sample.extra.at("depth").get<double>();
  }
  return std::nullopt;
}

}  // namespace

std::vector<Chart> score_by_budget_charts(const ScoreData& data) {
  return line_charts(data, Field::kBudget, "score_by_budget", "Score against budget",
                     "budget (entries per layer and KV head)");
}

std::vector<Chart> score_by_length_charts(const ScoreData& data) {
  return line_charts(data, Field::kLength, "score_by_length", "Score against length",
                     "prompt length (tokens)");
}

std::vector<Chart> needle_charts(const ScoreData& data) {
  const FieldIndex index(data);
  struct Panel {
    std::map<std::pair<double, int64_t>, Moments> cells;  // depth, length
  };
  // Table key without length and task; then budget and method.
  std::map<FieldCodes, std::map<std::pair<int32_t, int32_t>, Panel>> tables;
  for (const ScoreData::Cell& cell : data.cells) {
    const auto& prompt = data.prompts[static_cast<size_t>(cell.prompt)];
    const StoredSample& sample = data.samples[static_cast<size_t>(prompt.sample)];
    const auto depth = depth_of(sample);
    if (!depth || cell.status != CellStatus::kOk) {
      continue;
    }
    FieldCodes key = index.codes(cell);
    for (const Field field : {Field::kLength, Field::kTask, Field::kMethod, Field::kBudget}) {
      code(key, field) = -1;
    }
    tables[key][{cell.budget, cell.method}].cells[{*depth, sample.length}].add(cell.score);
  }
  std::vector<Chart> charts;
  for (const auto& [key, panels] : tables) {
    Json values = Json::array();
    size_t shown = 0;
    for (const auto& [arm, panel] : panels) {
      if (++shown > kMaxPanels) {
        break;
      }
      for (const auto& [place, scores] : panel.cells) {
        values.push_back(
            {{"arm", plain_line(fmt::format("{}, {}", index.label(Field::kMethod, arm.second),
                                            index.label(Field::kBudget, arm.first)))},
             {"depth", place.first},
             {"length", place.second},
             {"score", scores.mean()},
             {"n", scores.count()}});
      }
    }
    Chart chart{.name = fmt::format("needle_{}", charts.size() + 1),
                .title = title_of(index, key),
                .kind = "Needle found, by depth and length",
                .spec = {}};
    chart.spec = base_spec(chart.title, std::move(values));
    chart.spec["facet"] = {
        {"field", "arm"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}};
    chart.spec["columns"] = 4;
    chart.spec["spec"] = {
        {"width", 150},
        {"height", 150},
        {"mark", "rect"},
        {"encoding",
         {{"x", {{"field", "length"}, {"type", "ordinal"}, {"title", "length (tokens)"}}},
          {"y", {{"field", "depth"}, {"type", "ordinal"}, {"title", "depth (%)"}}},
          {"color",
           {{"field", "score"},
            {"type", "quantitative"},
            {"title", "mean score"},
            {"scale", {{"domain", {0, 100}}, {"scheme", "redyellowgreen"}}}}}}}};
    charts.push_back(std::move(chart));
  }
  return charts;
}

std::vector<Chart> cost_charts(const ScoreData& data, const std::vector<CellCost>& costs) {
  const FieldIndex index(data);
  const std::map<FieldCodes, double> eviction = median_eviction_ms(data, index, costs);
  ScoreTableOptions options;
  options.rows = {Field::kMethod, Field::kBudget};
  options.columns = Field::kLength;
  std::vector<Chart> charts;
  for (const TableGroup& table : group_scores(data, index, options)) {
    for (const auto& [length, tasks] : table.expected) {
      Json values = Json::array();
      for (const auto& [row, cells] : table.rows) {
        const auto cell = cells.find(length);
        FieldCodes key = table.key;
        code(key, Field::kDataset) = -1;
        code(key, Field::kLength) = length;
        code(key, Field::kMethod) = code(row, Field::kMethod);
        code(key, Field::kBudget) = code(row, Field::kBudget);
        const auto cost = eviction.find(key);
        if (cell == cells.end() || cost == eviction.end()) {
          continue;
        }
        const CellMean mean = cell_mean(cell->second, tasks);
        if (!mean.complete || mean.estimate.count == 0) {
          continue;
        }
        values.push_back(
            {{"method", plain_line(index.label(Field::kMethod, code(row, Field::kMethod)))},
             {"budget", plain_line(index.label(Field::kBudget, code(row, Field::kBudget)))},
             {"eviction_ms", cost->second},
             {"score", mean.estimate.mean}});
      }
      if (values.size() < 2) {
        continue;
      }
      FieldCodes key = table.key;
      code(key, Field::kLength) = length;
      Chart chart{.name = fmt::format("cost_{}", charts.size() + 1),
                  .title = title_of(index, key),
                  .kind = "Cost against quality",
                  .spec = {}};
      chart.spec = base_spec(chart.title, std::move(values));
      chart.spec["width"] = 460;
      chart.spec["height"] = 300;
      chart.spec["encoding"] = {{"x",
                                 {{"field", "eviction_ms"},
                                  {"type", "quantitative"},
                                  {"title", "median eviction time (ms)"},
                                  {"scale", {{"type", "symlog"}}}}},
                                {"y",
                                 {{"field", "score"},
                                  {"type", "quantitative"},
                                  {"title", "mean score"},
                                  {"scale", {{"zero", false}}}}},
                                {"color", {{"field", "method"}, {"type", "nominal"}}}};
      chart.spec["layer"] = {
          {{"mark", {{"type", "point"}, {"filled", true}, {"size", 70}}}},
          {{"mark", {{"type", "text"}, {"align", "left"}, {"dx", 7}, {"fontSize", 9}}},
           {"encoding", {{"text", {{"field", "budget"}, {"type", "nominal"}}}}}}};
      charts.push_back(std::move(chart));
    }
  }
  return charts;
}

namespace {

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
  const int64_t bins = std::min(kMapBins, selection.prompt_len);
  for (size_t layer = 0; layer < selection.kept.size(); ++layer) {
    std::vector<int64_t> kept(static_cast<size_t>(bins), 0);
    for (const auto& head : selection.kept[layer]) {
      for (const int32_t position : head) {
        ++kept[static_cast<size_t>(position * bins / selection.prompt_len)];
      }
    }
    const auto heads = static_cast<int64_t>(selection.kept[layer].size());
    for (int64_t bin = 0; bin < bins; ++bin) {
      const int64_t begin = (bin * selection.prompt_len + bins - 1) / bins;
      const int64_t end = ((bin + 1) * selection.prompt_len + bins - 1) / bins;
      const double share = static_cast<double>(kept[static_cast<size_t>(bin)]) /
                           static_cast<double>(std::max<int64_t>(1, (end - begin) * heads));
      if (share > 0) {
        values.push_back({{"arm", arm},
                          {"layer", layer},
                          {"begin", begin},
                          {"end", end},
                          {"share", std::min(1.0, share)}});
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
    for (size_t i = 0; i < std::min(cells.size(), kMaxPanels); ++i) {
      const std::string arm = fmt::format("{}{}", index.label(Field::kMethod, cells[i]->method),
                                          cells[i]->question_aware ? "" : ", question unseen");
      add_map(selections.at(cells[i]->row_id), plain_line(arm), values);
    }
    Chart chart{.name = fmt::format("retained_{}", charts.size() + 1),
                .title = plain_line(fmt::format("{}, budget {}", prompt->sample,
                                                index.label(Field::kBudget, budget))),
                .kind = "Which positions are kept",
                .spec = {}};
    chart.spec = base_spec(chart.title, std::move(values));
    chart.spec["facet"] = {
        {"field", "arm"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}};
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
                              {"scale", {{"domain", {0, 1}}, {"scheme", "viridis"}}}}}}}};
    charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace kvlab
