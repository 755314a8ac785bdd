#include "benchmarks/longbench/metrics/lcs_bits.h"

#include <bit>

namespace kvlab {

LcsRow::LcsRow(size_t width)
    : width_(width), flat_((width + 63) / 64, ~uint64_t{0}), matches_(flat_.size(), 0) {}

void LcsRow::advance(std::span<const uint32_t> matches) {
  if (matches.empty()) {
    return;
  }
  for (const uint32_t position : matches) {
    matches_[position / 64] |= uint64_t{1} << (position % 64);
  }
  // flat = (flat + u) | (flat - u) with u = flat & matches; the addition carries between words.
  uint64_t carry = 0;
  for (size_t word = 0; word < flat_.size(); ++word) {
    const uint64_t flat = flat_[word];
    const uint64_t u = flat & matches_[word];
    const uint64_t with_carry = flat + carry;
    const uint64_t sum = with_carry + u;
    carry = (with_carry < flat || sum < with_carry) ? 1 : 0;
    flat_[word] = sum | (flat & ~u);
  }
  for (const uint32_t position : matches) {
    matches_[position / 64] = 0;
  }
}

size_t LcsRow::length() const {
  size_t rises = 0;
  for (size_t word = 0; word < flat_.size(); ++word) {
    const size_t bits = width_ - word * 64;
    const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    rises += static_cast<size_t>(std::popcount(~flat_[word] & mask));
  }
  return rises;
}

}  // namespace kvlab
