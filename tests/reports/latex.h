// Compiling what the LaTeX writer makes, where a LaTeX is installed.
#pragma once

#include <string>

namespace kvlab {

// Whether pdflatex or tectonic can be run.
bool latex_is_installed();

// A document with this text in it, compiled. "" when that worked without an error, or what LaTeX
// said.
std::string latex_errors(const std::string& body);

}  // namespace kvlab

#define KVLAB_EXPECT_LATEX_COMPILES_OR_SKIP(body)                             \
  if (!::kvlab::latex_is_installed()) {                                       \
    GTEST_SKIP() << "needs pdflatex with booktabs: scripts/test installs it"; \
  }                                                                           \
  EXPECT_EQ(::kvlab::latex_errors(body), "")
