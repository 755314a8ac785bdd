// Selections on a tiny random model with query groups against kvpress and independent Python.
#include <gtest/gtest.h>

#include "tests/harness/model/golden_file.h"
#include "tests/methods/golden_selections.h"

namespace kvlab {
namespace {

const std::filesystem::path& model_dir() {
  static const std::filesystem::path dir = golden_dir() / "models" / "tiny-gqa";
  return dir;
}

TEST(TinySelections, EqualKvpress) { expect_kvpress_selections(model_dir(), "tiny-gqa"); }

TEST(TinySelections, EqualThePapersReadings) { expect_paper_selections(model_dir(), "tiny-gqa"); }

TEST(TinySelections, LaqEqualsAnIndependentImplementation) {
  expect_laq_selections(model_dir(), "tiny-gqa");
}

TEST(TinySelections, SpeckvEqualsAnIndependentImplementation) {
  expect_speckv_selections(model_dir(), "tiny-gqa");
}

}  // namespace
}  // namespace kvlab
