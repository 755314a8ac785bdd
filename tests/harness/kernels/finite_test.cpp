#include "harness/kernels/finite.h"

#include <limits>

#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {
namespace {

TEST(AllFinite, FindsOneBrokenValueAnywhere) {
  std::mt19937_64 random(1);
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) {
    for (int64_t size = 1; size < 70; ++size) {
      Values values = Values::random(type, size, random, 1e30F);
      EXPECT_TRUE(all_finite(type, values.data(), size));
      for (const float broken :
           {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
            std::numeric_limits<float>::quiet_NaN()}) {
        const int64_t place = pick(random, 0, size - 1);
        const float before = values.at(place);
        values.set(place, broken);
        EXPECT_FALSE(all_finite(type, values.data(), size)) << size << " " << place;
        values.set(place, before);
      }
    }
  }
}

TEST(AllFinite, TheLargestAndTheSmallestAreFinite) {
  const float values[] = {std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(),
                          std::numeric_limits<float>::denorm_min(), 0.0F, -0.0F};
  EXPECT_TRUE(all_finite(ElementType::kFloat32, values, 5));
  EXPECT_TRUE(all_finite(ElementType::kFloat32, nullptr, 0));
}

}  // namespace
}  // namespace kvlab
