#include "reports/chart_style.h"

#include <algorithm>

#include "harness/base/status.h"
#include "reports/escape.h"

namespace kvlab {
namespace {

// Told apart also without red and green; repeated where there are more methods.
constexpr const char* kColours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                    "#56b4e9", "#d55e00", "#8a7a00", "#6a3d9a",
                                    "#1b7837", "#b15928", "#f0a3b5", "#2c3e91"};
constexpr const char* kFullColour = "#555555";

bool is_full_cache(const ScoreData& data, int32_t method) {
  return data.methods[static_cast<size_t>(method)].name == "full";
}

}  // namespace

Json base_spec(const std::string& title, Json values) {
  return {{"$schema", "https://vega.github.io/schema/vega-lite/v5.json"},
          {"title", {{"text", title}, {"anchor", "start"}, {"fontSize", 13}, {"offset", 12}}},
          {"data", {{"values", std::move(values)}}},
          {"background", "white"},
          {"config",
           {{"font", "DejaVu Sans, Arial, sans-serif"},
            {"view", {{"stroke", nullptr}}},
            {"axis",
             {{"labelLimit", 240},
              {"labelFontSize", 11},
              {"titleFontSize", 12},
              {"titleFontWeight", "normal"},
              {"gridColor", "#e8e8e8"},
              {"domainColor", "#888888"},
              {"tickColor", "#888888"}}},
            {"legend",
             {{"labelFontSize", 11},
              {"titleFontSize", 11},
              {"titleFontWeight", "normal"},
              {"symbolOpacity", 1},
              {"labelLimit", 260}}},
            {"header",
             {{"labelFontSize", 11},
              {"titleFontSize", 12},
              {"titleFontWeight", "normal"},
              {"labelLimit", 160}}}}}};
}

std::string chart_title(const FieldIndex& index, const FieldCodes& key) {
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
             (field == Field::kLength          ? label + " tokens"
              : field == Field::kQuestionAware ? std::string("question unseen")
              : bare                           ? label
                                               : fmt::format("{} {}", field_name(field), label));
  }
  return truncate_to_width(plain_line(title), 160);
}

std::string chart_method(const FieldIndex& index, int32_t method) {
  return truncate_to_width(plain_line(index.label(Field::kMethod, method)), 40);
}

Json method_colour(const ScoreData& data, const FieldIndex& index,
                   const std::vector<int32_t>& methods) {
  Json domain = Json::array();
  Json range = Json::array();
  for (const int32_t method : methods) {
    // Numbered by the methods before it in the database, so that charts agree.
    int32_t number = 0;
    for (int32_t other = 0; other < method; ++other) {
      number += is_full_cache(data, other) ? 0 : 1;
    }
    domain.push_back(chart_method(index, method));
    range.push_back(is_full_cache(data, method)
                        ? kFullColour
                        : kColours[static_cast<size_t>(number) % std::size(kColours)]);
  }
  return {{"field", "method"},
          {"type", "nominal"},
          {"title", nullptr},
          {"scale", {{"domain", std::move(domain)}, {"range", std::move(range)}}}};
}

Shown first_codes(const std::vector<int32_t>& ordered, size_t limit) {
  Shown shown;
  for (const int32_t code : ordered) {
    if (std::find(shown.codes.begin(), shown.codes.end(), code) != shown.codes.end()) {
      continue;
    }
    if (shown.codes.size() == limit) {
      shown.cut = true;
      break;
    }
    shown.codes.push_back(code);
  }
  return shown;
}

}  // namespace kvlab
