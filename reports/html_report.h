// The report as one self-contained HTML file: tables that sort, charts, and the specifications the
// charts were drawn from. Nothing is loaded from anywhere.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "reports/charts.h"
#include "reports/table.h"

namespace kvlab {

struct HtmlReportOptions {
  std::filesystem::path python;                            // with vl_convert; "": the set-up's
  std::vector<std::pair<std::string, std::string>> facts;  // printed on top, see run_facts()
};

struct HtmlReportSummary {
  size_t tables = 0, charts = 0, drawn = 0;
  std::filesystem::path chart_folder;  // SVG, PDF and the specifications
  std::string missing;                 // why charts were not drawn; "" when all were
};

// Writes `path`, and beside it a folder "<stem>_charts" with NAME.vl.json, NAME.svg and NAME.pdf.
// Without a renderer the page has its tables and specifications, and says what was left out.
absl::StatusOr<HtmlReportSummary> write_html_report(const std::filesystem::path& path,
                                                    const std::string& title,
                                                    const std::vector<Table>& tables,
                                                    const std::vector<Chart>& charts,
                                                    const HtmlReportOptions& options = {});

}  // namespace kvlab
