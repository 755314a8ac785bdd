// Selections on SmolLM2 against kvpress and independent Python.
#include <gtest/gtest.h>

#include "tests/methods/golden_selections.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

TEST(SmolLm2Selections, EqualKvpress) {
  KVLAB_DEFAULT_MODEL_OR_SKIP(dir);
  expect_kvpress_selections(dir, "smollm2");
}

TEST(SmolLm2Selections, EqualThePapersReadings) {
  KVLAB_DEFAULT_MODEL_OR_SKIP(dir);
  expect_paper_selections(dir, "smollm2");
}

TEST(SmolLm2Selections, LaqEqualsAnIndependentImplementation) {
  KVLAB_DEFAULT_MODEL_OR_SKIP(dir);
  expect_laq_selections(dir, "smollm2");
}

TEST(SmolLm2Selections, SpeckvEqualsAnIndependentImplementation) {
  KVLAB_DEFAULT_MODEL_OR_SKIP(dir);
  expect_speckv_selections(dir, "smollm2");
}

}  // namespace
}  // namespace kvlab
