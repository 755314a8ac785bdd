// Tables as text, Markdown, CSV, LaTeX and HTML.
#pragma once

#include <absl/status/statusor.h>

#include <span>
#include <string>
#include <string_view>

#include "reports/table.h"

namespace kvlab {

enum class TableFormat { kText, kMarkdown, kCsv, kLatex, kHtml };

// Unknown names are an error that lists the known ones.
absl::StatusOr<TableFormat> parse_table_format(std::string_view name);

struct WriterOptions {
  bool ansi_bold = false;  // text: bold by terminal codes instead of a star
};

std::string write_tables(std::span<const Table> tables, TableFormat format,
                         const WriterOptions& options = {});

std::string write_text(const Table& table, const WriterOptions& options = {});
std::string write_markdown(const Table& table);
// Booktabs; needs \usepackage{booktabs,textcomp} and T1 fonts.
std::string write_latex(const Table& table);
std::string write_html(const Table& table);  // one <section>, sortable by the report's script
// One line a cell: attributes, row headers, column, metric, mean, low, high, n, expected. One
// header line serves all tables, so that a program can read the whole output.
std::string write_csv(std::span<const Table> tables);

}  // namespace kvlab
