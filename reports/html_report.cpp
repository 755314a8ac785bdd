#include "reports/html_report.h"

#include <openssl/evp.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "reports/chart_renderer.h"
#include "reports/escape.h"
#include "reports/html_assets.h"
#include "reports/writers.h"

namespace kvlab {
namespace {

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

// Newlines are markup here, not foreign text.
std::string escape_lines(const std::string& text) {
  std::string block;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    block += escape_html(std::string_view(text).substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return block;
}

// An image cannot run scripts or load anything, whatever names stand in the drawing.
std::string figure(const Chart& chart, const std::filesystem::path& svg, bool& drawn) {
  const auto image = read_file(svg);
  drawn = image.ok();
  // Panels need the page's width; single charts stand side by side.
  std::string out = chart.spec.contains("facet") ? "<figure class=\"wide\">\n" : "<figure>\n";
  if (drawn) {
    out += fmt::format("<img class=\"chart\" alt=\"{}\" src=\"data:image/svg+xml;base64,{}\">\n",
                       escape_html(chart.kind + ": " + chart.title), base64(*image));
  } else {
    out += fmt::format("<p class=\"warning\">not drawn: {}</p>\n", escape_html(chart.title));
  }
  out += fmt::format(
      "<details><summary>{}.vl.json: the Vega-Lite specification, with its data</summary>"
      "<pre>{}</pre></details>\n",
      escape_html(chart.name),
      escape_lines(dump_json(chart.spec, chart.spec.contains("facet") ? -1 : 1)));
  return out + "</figure>\n";
}

// "Score against budget" to "score-against-budget".
std::string anchor(const std::string& heading) {
  std::string text;
  for (const char c : heading) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool capital = c >= 'A' && c <= 'Z';
    text += letter ? c : capital ? static_cast<char>(c - 'A' + 'a') : '-';
  }
  return text;
}

std::string heading(const std::string& text) {
  return fmt::format("<h2 id=\"{}\">{}</h2>\n", anchor(text), escape_html(text));
}

std::string page_head(const std::string& title, const std::vector<Chart>& charts,
                      const HtmlReportOptions& options) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  // The page may use what is inside it and nothing else.
  out +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n";
  out += fmt::format("<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<h1>{}</h1>\n",
                     escape_html(title), kReportStyle, escape_html(title));
  if (!options.facts.empty()) {
    out += "<dl class=\"facts\">\n";
    for (const auto& [name, value] : options.facts) {
      out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escape_html(name), escape_html(value));
    }
    out += "</dl>\n";
  }
  std::string links = "<a href=\"#tables\">Tables</a>";
  std::string kind;
  for (const Chart& chart : charts) {
    if (chart.kind != kind) {
      kind = chart.kind;
      links += fmt::format(" <a href=\"#{}\">{}</a>", anchor(kind), escape_html(kind));
    }
  }
  return out + (kind.empty() ? "" : "<nav>" + links + "</nav>\n");
}

}  // namespace

absl::StatusOr<HtmlReportSummary> write_html_report(const std::filesystem::path& path,
                                                    const std::string& title,
                                                    const std::vector<Table>& tables,
                                                    const std::vector<Chart>& charts,
                                                    const HtmlReportOptions& options) {
  HtmlReportSummary summary{.tables = tables.size(),
                            .charts = charts.size(),
                            .drawn = 0,
                            .chart_folder = path.parent_path() / (path.stem().string() + "_charts"),
                            .missing = ""};
  if (!charts.empty()) {
    // Drawings of an earlier report must not pass for this one's.
    std::error_code ignored;
    for (const Chart& chart : charts) {
      std::filesystem::remove(summary.chart_folder / (chart.name + ".svg"), ignored);
      std::filesystem::remove(summary.chart_folder / (chart.name + ".pdf"), ignored);
    }
    const absl::Status drawn =
        render_charts(charts, summary.chart_folder,
                      options.python.empty() ? default_chart_python() : options.python);
    if (!drawn.ok()) {
      summary.missing = message_of(drawn);
    }
  }
  std::string out = page_head(title, charts, options);
  if (!summary.missing.empty()) {
    out += fmt::format(
        "<p class=\"warning\">Charts are left out: {}. Their specifications are below and in the "
        "folder {}.</p>\n",
        escape_html(summary.missing), escape_html(summary.chart_folder.filename().string()));
  }
  out += heading("Tables") + "<p>A click on a column's head sorts by it.</p>\n";
  for (const Table& table : tables) {
    out += write_html(table);
  }
  std::string kind;
  for (const Chart& chart : charts) {
    if (chart.kind != kind) {
      out += (kind.empty() ? "" : "</div>\n") + heading(chart.kind) + "<div class=\"figures\">\n";
      kind = chart.kind;
    }
    bool drawn = false;
    out += figure(chart, summary.chart_folder / (chart.name + ".svg"), drawn);
    summary.drawn += drawn ? 1 : 0;
  }
  out += fmt::format("{}<script>\n{}</script>\n</body>\n</html>\n", kind.empty() ? "" : "</div>\n",
                     kReportScript);
  KVLAB_RETURN_IF_ERROR(write_file(path, out));
  return summary;
}

}  // namespace kvlab
