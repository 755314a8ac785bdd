#include "harness/base/allocator.h"

#include <gmock/gmock.h>

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Allocator, IsTheOneBuiltInAndAsksForHugePages) {
#if defined(KVLAB_JEMALLOC)
  EXPECT_THAT(allocator_name(), AllOf(StartsWith("jemalloc "), HasSubstr("thp:always")));
#else
  EXPECT_EQ(allocator_name(), "the C library's");
#endif
}

}  // namespace
}  // namespace kvlab
