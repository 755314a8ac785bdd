// Drawing Vega-Lite specifications with vl-convert, in the set-up's Python.
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <vector>

#include "reports/charts.h"

namespace kvlab {

// The set-up's Python below KVLAB_CACHE.
std::filesystem::path default_chart_python();

// Writes NAME.vl.json for every chart into `folder`, then NAME.svg and NAME.pdf. The specifications
// are there even when drawing fails. Errors: no Python, no vl_convert in it, a chart it refuses.
absl::Status render_charts(const std::vector<Chart>& charts, const std::filesystem::path& folder,
                           const std::filesystem::path& python);

}  // namespace kvlab
