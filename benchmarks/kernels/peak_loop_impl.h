// The loop behind peak_loops.h, for the instruction set of the including file.
#pragma once

#include <cstdint>

namespace kvlab {
namespace {

// kSums registers of floats take one step after the other: sum = one(sum, factor).
template <typename Register, int kSums, typename Factor, typename Step>
float peak_loop(int64_t steps, Factor factor, const Step& one) {
  Register sums[kSums];
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) {
    sums[i] = Register{};
    asm volatile("" : "+v"(sums[i]));  // equal sums would be computed once
  }
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i) {
      sums[i] = one(sums[i], factor);
    }
    // What the compiler cannot see through, so that no step is left out.
    asm volatile("" : "+v"(factor));
  }
  Register total = sums[0];
#pragma GCC unroll 24
  for (int i = 1; i < kSums; ++i) {
    total += sums[i];
  }
  return total[0];
}

}  // namespace
}  // namespace kvlab
