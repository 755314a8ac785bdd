#include "harness/kernels/argmax.h"

#include <algorithm>

#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {
namespace {

int64_t slow_argmax(const std::vector<float>& values) {
  int64_t best = -1;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i]) && (best < 0 || values[i] > values[static_cast<size_t>(best)])) {
      best = static_cast<int64_t>(i);
    }
  }
  return best;
}

TEST(ArgmaxTest, EqualsASimpleLoopWithTiesInfinitiesAndNaN) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::vector<float> values(static_cast<size_t>(pick(random, 0, 70)));
    for (float& value : values) {
      // Few values, so that many are equal.
      value = pick_of(random, {-2.0F, -1.0F, -0.0F, 0.0F, 3.0F, INFINITY, -INFINITY, NAN, NAN});
    }
    if (pick(random, 0, 3) == 0) {
      std::fill(values.begin(), values.end(), pick_of(random, {NAN, -INFINITY, 1.0F}));
    }
    EXPECT_EQ(argmax(values.data(), static_cast<int64_t>(values.size())), slow_argmax(values));
  }
}

}  // namespace
}  // namespace kvlab
