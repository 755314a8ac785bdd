#include "benchmarks/longbench/metrics/code_similarity.h"

#include <cmath>

#include "benchmarks/longbench/metrics/string_ratio.h"
#include "harness/text/python_text.h"

namespace kvlab {
namespace {

std::u32string_view first_code_line(std::u32string_view reply) {
  const size_t begin = reply.find_first_not_of(U'\n');
  if (begin == std::u32string_view::npos) {
    return {};
  }
  for (const std::u32string_view line : split_at(reply.substr(begin), U'\n')) {
    if (line.find(U'`') == std::u32string_view::npos &&
        line.find(U'#') == std::u32string_view::npos &&
        line.find(U"//") == std::u32string_view::npos) {
      return line;
    }
  }
  return {};
}

}  // namespace

double code_similarity(std::u32string_view reply, std::u32string_view reference, CodeRatio ratio) {
  const std::u32string_view line = first_code_line(reply);
  if (line == reference) {
    return 1;
  }
  if (line.empty() || reference.empty()) {
    return 0;
  }
  const double value = ratio == CodeRatio::kDifflib ? difflib_ratio(line, reference)
                                                    : levenshtein_ratio(line, reference);
  return std::nearbyint(100 * value) / 100;  // int(round(...)) rounds half to even
}

}  // namespace kvlab
