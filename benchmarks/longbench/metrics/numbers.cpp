#include "benchmarks/longbench/metrics/numbers.h"

#include <algorithm>

#include "harness/text/python_text.h"

namespace kvlab {

double number_share(std::u32string_view reply, std::u32string_view number) {
  const auto numbers = find_numbers(reply);
  if (numbers.empty()) {
    return 0;
  }
  const auto right = std::count(numbers.begin(), numbers.end(), number);
  return static_cast<double>(right) / static_cast<double>(numbers.size());
}

std::optional<std::u32string_view> number_after(std::u32string_view reference,
                                                std::u32string_view word) {
  for (size_t at = reference.find(word); at != std::u32string_view::npos;
       at = reference.find(word, at + 1)) {
    const size_t begin = at + word.size();
    size_t end = begin;
    while (end < reference.size() && is_python_digit(reference[end])) {
      ++end;
    }
    if (end > begin) {
      return reference.substr(begin, end - begin);
    }
  }
  return std::nullopt;
}

}  // namespace kvlab
