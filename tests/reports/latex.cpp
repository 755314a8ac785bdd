#include "tests/reports/latex.h"

#include <fmt/format.h>

#include <cstdlib>

#include "harness/base/files.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

bool runs(const std::string& command) {
  return std::system(("(" + command + ") >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace

bool latex_is_installed() {
  return runs("kpsewhich booktabs.sty && command -v pdflatex") || runs("command -v tectonic");
}

std::string latex_errors(const std::string& body) {
  const TemporaryFolder folder;
  const std::string document =
      "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage{booktabs,textcomp}\n"
      "\\begin{document}\n" +
      body + "\\end{document}\n";
  if (!write_file(folder.path() / "table.tex", document).ok()) {
    return "cannot write";
  }
  // Draft mode sets every line and leaves out the PDF, and with it the fonts' shapes.
  const std::string command =
      runs("command -v pdflatex")
          ? "pdflatex -draftmode -interaction=nonstopmode -halt-on-error -no-shell-escape table.tex"
          : "tectonic table.tex";
  const std::string run =
      fmt::format("cd '{}' && {} >out.txt 2>&1", folder.path().string(), command);
  if (std::system(run.c_str()) == 0) {
    return "";
  }
  const std::string log = read_file(folder.path() / "out.txt").value_or("no output");
  const size_t at = log.find("\n!");
  return log.substr(at == std::string::npos ? 0 : at, 1000);
}

}  // namespace kvlab
