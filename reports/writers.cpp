#include "reports/writers.h"

#include <algorithm>
#include <vector>

#include "harness/base/check.h"
#include "harness/base/status.h"
#include "reports/escape.h"

namespace kvlab {
namespace {

struct FormatName {
  std::string_view name;
  TableFormat format;
};
constexpr FormatName kFormats[] = {{"text", TableFormat::kText},
                                   {"markdown", TableFormat::kMarkdown},
                                   {"csv", TableFormat::kCsv},
                                   {"latex", TableFormat::kLatex},
                                   {"html", TableFormat::kHtml}};

std::string padded(const std::string& text, int width, bool right) {
  const std::string fill(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
  return right ? fill + text : text + fill;
}

// A header line and rows of escaped text, for the formats that align columns.
struct Grid {
  std::vector<std::vector<std::string>> lines;  // header, detail (may be absent), rows
  size_t header_lines = 1;
  std::vector<int> widths;

  void measure() {
    widths.assign(lines.front().size(), 0);
    for (const auto& line : lines) {
      for (size_t i = 0; i < line.size(); ++i) {
        widths[i] = std::max(widths[i], display_width(line[i]));
      }
    }
  }
};

template <typename Escape, typename Best>
Grid make_grid(const Table& table, Escape escape, Best best) {
  Grid grid;
  std::vector<std::string> header, detail;
  for (const std::string& name : table.row_headers) {
    header.push_back(escape(name));
    detail.emplace_back();
  }
  bool any_detail = false;
  for (const TableColumn& column : table.columns) {
    header.push_back(escape(column.name));
    detail.push_back(escape(column.detail));
    any_detail |= !column.detail.empty();
  }
  grid.lines.push_back(std::move(header));
  if (any_detail) {
    grid.lines.push_back(std::move(detail));
    grid.header_lines = 2;
  }
  for (const TableRow& row : table.rows) {
    KVLAB_CHECK(row.headers.size() == table.row_headers.size());
    KVLAB_CHECK(row.cells.size() == table.columns.size());
    std::vector<std::string> line;
    for (const std::string& name : row.headers) {
      line.push_back(escape(name));
    }
    for (const TableCell& cell : row.cells) {
      const std::string text = escape(cell.text);
      line.push_back(cell.best ? best(text) : text);
    }
    grid.lines.push_back(std::move(line));
  }
  grid.measure();
  return grid;
}

bool is_best(const Table& table, const Grid& grid, size_t line, size_t column) {
  return line >= grid.header_lines && column >= table.row_headers.size() &&
         table.rows[line - grid.header_lines].cells[column - table.row_headers.size()].best;
}

// Whether a line is drawn above this line of the grid.
bool starts_group(const Table& table, const Grid& grid, size_t line) {
  if (line < grid.header_lines) {
    return false;
  }
  const size_t row = line - grid.header_lines;
  return row == 0 || table.rows[row].group != table.rows[row - 1].group;
}

}  // namespace

absl::StatusOr<TableFormat> parse_table_format(std::string_view name) {
  std::string known;
  for (const FormatName& format : kFormats) {
    if (format.name == name) {
      return format.format;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", format.name);
  }
  return invalid_argument("unknown format \"{}\"; formats: {}", plain_line(name), known);
}

std::string write_text(const Table& table, const WriterOptions& options) {
  Grid grid = make_grid(
      table, [](const std::string& text) { return plain_line(text); },
      [](const std::string& text) { return text; });
  bool any_best = false;
  for (size_t i = 0; i < grid.lines.size(); ++i) {
    for (size_t j = 0; j < grid.lines[i].size(); ++j) {
      any_best |= is_best(table, grid, i, j);
    }
  }
  const bool stars = any_best && !options.ansi_bold;
  if (stars) {
    for (size_t i = 0; i < grid.lines.size(); ++i) {
      for (size_t j = table.row_headers.size(); j < grid.lines[i].size(); ++j) {
        grid.lines[i][j] += is_best(table, grid, i, j) ? " *" : "  ";
      }
    }
    grid.measure();
  }
  std::string out = plain_line(table.title) + "\n";
  if (!table.caption.empty()) {
    out += plain_line(table.caption) + "\n";
  }
  out += "\n";
  int total = -2;
  for (const int width : grid.widths) {
    total += width + 2;
  }
  const std::string rule = std::string(static_cast<size_t>(std::max(total, 0)), '-') + "\n";
  for (size_t i = 0; i < grid.lines.size(); ++i) {
    out += starts_group(table, grid, i) ? rule : "";
    std::string line;
    for (size_t j = 0; j < grid.lines[i].size(); ++j) {
      // Terminal codes have no width of their own: they come after padding.
      const bool bold = options.ansi_bold && is_best(table, grid, i, j);
      line += (j == 0 ? "" : "  ") + std::string(bold ? "\x1b[1m" : "") +
              padded(grid.lines[i][j], grid.widths[j], j >= table.row_headers.size()) +
              (bold ? "\x1b[0m" : "");
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  if (!table.notes.empty() || stars) {
    out += "\n";
  }
  if (stars) {
    out += "*: best of its budget, full cache and oracle apart\n";
  }
  for (const std::string& note : table.notes) {
    out += plain_line(note) + "\n";
  }
  return out;
}

std::string write_markdown(const Table& table) {
  const auto escape = [](const std::string& text) { return escape_markdown(text); };
  // One header line: pipe tables have no second.
  Table flat = table;
  for (TableColumn& column : flat.columns) {
    if (!column.detail.empty()) {
      column.name += " (" + column.detail + ")";
      column.detail.clear();
    }
  }
  const Grid grid =
      make_grid(flat, escape, [](const std::string& text) { return "**" + text + "**"; });
  std::string out = "### " + escape_markdown(table.title) + "\n\n";
  if (!table.caption.empty()) {
    out += escape_markdown(table.caption) + "\n\n";
  }
  for (size_t i = 0; i < grid.lines.size(); ++i) {
    out += "|";
    for (size_t j = 0; j < grid.lines[i].size(); ++j) {
      out += " " + padded(grid.lines[i][j], grid.widths[j], j >= table.row_headers.size()) + " |";
    }
    out += "\n";
    if (i == 0) {
      out += "|";
      for (size_t j = 0; j < grid.widths.size(); ++j) {
        const auto dashes = static_cast<size_t>(std::max(grid.widths[j], 3));
        out += j >= table.row_headers.size() ? " " + std::string(dashes - 1, '-') + ": |"
                                             : " " + std::string(dashes, '-') + " |";
      }
      out += "\n";
    }
  }
  if (!table.notes.empty()) {
    out += "\n";
  }
  for (const std::string& note : table.notes) {
    out += "- " + escape_markdown(note) + "\n";
  }
  return out;
}

std::string write_latex(const Table& table) {
  const Grid grid = make_grid(
      table, [](const std::string& text) { return escape_latex(text); },
      [](const std::string& text) { return "\\textbf{" + text + "}"; });
  std::string out = "% \\usepackage[T1]{fontenc} \\usepackage{booktabs,textcomp}\n";
  out += "\\begin{table}\n\\centering\n\\small\n";
  out += "\\caption{" + escape_latex(table.title) +
         (table.caption.empty() ? "" : ". " + escape_latex(table.caption)) + ".}\n";
  out += "\\begin{tabular}{" + std::string(table.row_headers.size(), 'l') +
         std::string(table.columns.size(), 'r') + "}\n\\toprule\n";
  for (size_t i = 0; i < grid.lines.size(); ++i) {
    out += starts_group(table, grid, i) ? "\\midrule\n" : "";
    for (size_t j = 0; j < grid.lines[i].size(); ++j) {
      out += (j == 0 ? "" : " & ") + grid.lines[i][j];
    }
    out += " \\\\\n";
  }
  out += "\\bottomrule\n\\end{tabular}\n";
  for (const std::string& note : table.notes) {
    out += "\\par\\footnotesize " + escape_latex(note) + "\n";
  }
  return out + "\\end{table}\n";
}

std::string write_html(const Table& table) {
  std::string out = "<section class=\"table\">\n<h3>" + escape_html(table.title) + "</h3>\n";
  if (!table.caption.empty()) {
    out += "<p>" + escape_html(table.caption) + "</p>\n";
  }
  out += "<div class=\"scroll\"><table class=\"sortable\">\n<thead><tr>";
  for (const std::string& name : table.row_headers) {
    out += "<th scope=\"col\">" + escape_html(name) + "</th>";
  }
  for (const TableColumn& column : table.columns) {
    out += "<th scope=\"col\" class=\"number\">" + escape_html(column.name);
    if (!column.detail.empty()) {
      out += "<small>" + escape_html(column.detail) + "</small>";
    }
    out += "</th>";
  }
  out += "</tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const TableRow& row = table.rows[i];
    out += i > 0 && row.group != table.rows[i - 1].group ? "<tr class=\"group\">" : "<tr>";
    for (const std::string& name : row.headers) {
      out += "<th scope=\"row\">" + escape_html(name) + "</th>";
    }
    for (const TableCell& cell : row.cells) {
      // The number that sorting goes by.
      out += cell.value ? fmt::format("<td data-value=\"{}\">", *cell.value) : "<td>";
      const std::string text = escape_html(cell.text);
      out += (cell.best ? "<b>" + text + "</b>" : text) + "</td>";
    }
    out += "</tr>\n";
  }
  out += "</tbody></table></div>\n";
  if (!table.notes.empty()) {
    out += "<ul class=\"notes\">\n";
    for (const std::string& note : table.notes) {
      out += "<li>" + escape_html(note) + "</li>\n";
    }
    out += "</ul>\n";
  }
  return out + "</section>\n";
}

std::string write_csv(std::span<const Table> tables) {
  // Attributes and row headers of all tables; where a table lacks one, the field is empty.
  std::vector<std::string> keys;
  const auto add_key = [&](const std::string& key) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      keys.push_back(key);
    }
  };
  for (const Table& table : tables) {
    for (const auto& [name, value] : table.attributes) {
      add_key(name);
    }
  }
  for (const Table& table : tables) {
    for (const std::string& name : table.row_headers) {
      add_key(name);
    }
  }
  std::string out;
  for (const std::string& key : keys) {
    out += csv_text(key) + ",";
  }
  out += "column,metric,value,low,high,n,expected,best,text\r\n";
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string();
  };
  for (const Table& table : tables) {
    for (const TableRow& row : table.rows) {
      std::string lead;
      for (const std::string& key : keys) {
        for (const auto& [name, value] : table.attributes) {
          lead += name == key ? csv_text(value) : "";
        }
        for (size_t i = 0; i < table.row_headers.size(); ++i) {
          lead += table.row_headers[i] == key ? csv_text(row.headers[i]) : "";
        }
        lead += ",";
      }
      for (size_t i = 0; i < row.cells.size(); ++i) {
        const TableCell& cell = row.cells[i];
        out += lead + csv_text(table.columns[i].name) + "," + csv_text(table.columns[i].metric) +
               fmt::format(",{},{},{},{},{},{},", number(cell.value), number(cell.low),
                           number(cell.high), cell.count, cell.expected, cell.best ? 1 : 0) +
               csv_text(cell.text) + "\r\n";
      }
    }
  }
  return out;
}

std::string write_tables(std::span<const Table> tables, TableFormat format,
                         const WriterOptions& options) {
  if (format == TableFormat::kCsv) {
    return write_csv(tables);
  }
  std::string out;
  for (const Table& table : tables) {
    out += out.empty() ? "" : "\n";
    switch (format) {
      case TableFormat::kText:
        out += write_text(table, options);
        break;
      case TableFormat::kMarkdown:
        out += write_markdown(table);
        break;
      case TableFormat::kLatex:
        out += write_latex(table);
        break;
      case TableFormat::kHtml:
        out += write_html(table);
        break;
      case TableFormat::kCsv:
        break;
    }
  }
  return out;
}

}  // namespace kvlab
