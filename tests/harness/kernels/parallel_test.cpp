#include "harness/kernels/parallel.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "harness/kernels/scratch.h"
#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {
namespace {

class ParallelTest : public testing::TestWithParam<ThreadPool> {
 protected:
  void SetUp() override { set_kernel_thread_pool(GetParam()); }
  void TearDown() override { set_kernel_thread_pool(before_); }

 private:
  LevelGuard guard_{cpu_level()};
  ThreadPool before_ = kernel_thread_pool();
};

INSTANTIATE_TEST_SUITE_P(Pools, ParallelTest,
                         testing::Values(ThreadPool::kShared, ThreadPool::kOwn),
                         [](const testing::TestParamInfo<ThreadPool>& pool) {
                           return pool.param == ThreadPool::kOwn ? "own" : "shared";
                         });

TEST_P(ParallelTest, RunsEveryTaskOnceWithAThreadNumberInRange) {
  for (int threads = 1; threads <= 6; ++threads) {
    set_kernel_threads(threads);
    EXPECT_EQ(kernel_threads(), threads);
    for (int64_t tasks : {0, 1, 2, 3, 17, 1000}) {
      std::vector<std::atomic<int>> runs(tasks);
      std::atomic<bool> in_range{true};
      parallel_for(tasks, [&](int64_t task, int thread) {
        runs[task].fetch_add(1);
        if (thread < 0 || thread >= threads) {
          in_range = false;
        }
      });
      EXPECT_TRUE(in_range);
      for (const auto& count : runs) {
        ASSERT_EQ(count.load(), 1);
      }
    }
  }
}

TEST_P(ParallelTest, ManyShortCallsInARowAllFinish) {
  set_kernel_threads(4);
  std::atomic<int64_t> sum{0};
  for (int call = 0; call < 5000; ++call) {
    parallel_for(5, [&](int64_t task, int) { sum += task; });
  }
  EXPECT_EQ(sum.load(), 5000 * 10);
}

TEST_P(ParallelTest, AnExceptionOfATaskReachesTheCallerAndThePoolGoesOn) {
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(parallel_for(20,
                              [&](int64_t task, int) {
                                if (task % 7 == round % 7) {
                                  throw std::runtime_error("no memory");
                                }
                              }),
                 std::runtime_error);
    std::atomic<int64_t> sum{0};
    parallel_for(10, [&](int64_t task, int) { sum += task; });
    EXPECT_EQ(sum, 45);
  }
}

// Workers that sleep when a call comes may wake up after it.
TEST_P(ParallelTest, CallsWithPausesBetweenThemAllFinish) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int64_t> sum{0};
    parallel_for(5, [&](int64_t task, int) { sum += task; });
    ASSERT_EQ(sum, 10);
    std::this_thread::sleep_for(std::chrono::microseconds(round * 5));
  }
}

TEST_P(ParallelTest, CallsFromInsideATaskRunToTheEnd) {
  set_kernel_threads(3);
  std::atomic<int> inner{0};
  parallel_for(8, [&](int64_t, int) {
    EXPECT_EQ(kernel_threads(), 3);
    parallel_for(4, [&](int64_t, int thread) {
      EXPECT_EQ(thread, 0);
      ++inner;
    });
  });
  EXPECT_EQ(inner.load(), 32);
}

TEST_P(ParallelTest, CallsFromSeveralThreadsAtOnceAllFinish) {
  set_kernel_threads(3);
  std::atomic<int> runs{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int call = 0; call < 200; ++call) {
        parallel_for(7, [&](int64_t, int) { ++runs; });
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(runs.load(), 4 * 200 * 7);
}

TEST_P(ParallelTest, ScratchIsAlignedAndSlotsDoNotOverlap) {
  char* caller = static_cast<char*>(thread_scratch(0, 1000));
  char* task = static_cast<char*>(thread_scratch(1, 100000));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(caller) % 64, 0U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(task) % 64, 0U);
  std::fill(caller, caller + 1000, 'a');
  std::fill(task, task + 100000, 'b');
  EXPECT_EQ(thread_scratch(0, 500), caller);
  EXPECT_EQ(caller[999], 'a');
}

TEST(ElementTest, BFloat16RoundsToNearestEvenAndKeepsSpecialValues) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 value{static_cast<uint16_t>(bits)};
    if (!std::isnan(to_float(value))) {
      ASSERT_EQ(to_bfloat16(to_float(value)).bits, value.bits);
    }
  }
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::nanf("")))));
  EXPECT_EQ(to_float(to_bfloat16(1.00390625F)), 1.0F);       // halfway, even below
  EXPECT_EQ(to_float(to_bfloat16(1.01171875F)), 1.015625F);  // halfway, even above
  EXPECT_TRUE(std::isinf(to_float(to_bfloat16(3.4e38F))));
}

}  // namespace
}  // namespace kvlab
