#include "harness/base/allocator.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Allocator, IsTheOneBuiltInAndAsksForHugePages) {
#if defined(KVLAB_JEMALLOC)
  if (std::getenv("MALLOC_CONF") != nullptr) {
    GTEST_SKIP() << "MALLOC_CONF is set";
  }
  // jemalloc says "not supported" where the system does not tell how it gives huge pages.
  EXPECT_THAT(allocator_name(),
              AllOf(StartsWith("jemalloc "),
                    AnyOf(HasSubstr("thp:always"), HasSubstr("thp:not supported"))));
#else
  EXPECT_EQ(allocator_name(), "the C library's");
#endif
}

}  // namespace
}  // namespace kvlab
