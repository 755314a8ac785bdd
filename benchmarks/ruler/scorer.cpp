#include "benchmarks/ruler/scorer.h"

#include "harness/text/python_text.h"
#include "harness/text/python_utf8.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

std::string lower(std::string_view text) { return to_utf8(python_lower(to_code_points(text))); }

}  // namespace

Score ruler_score(const std::vector<std::string>& references, bool any_reference,
                  std::string_view reply) {
  std::string text(python_strip(to_valid_utf8(reply)));
  for (char& c : text) {
    c = static_cast<unsigned char>(c) < 0x20 ? '\n' : c;
  }
  const std::string haystack = lower(python_strip(text));
  size_t found = 0;
  for (const std::string& reference : references) {
    found += haystack.find(lower(to_valid_utf8(reference))) != haystack.npos ? 1 : 0;
  }
  if (any_reference) {
    return {found > 0 ? 100.0 : 0.0, "string_match_part"};
  }
  const double share = references.empty()
                           ? 0.0
                           : static_cast<double>(found) / static_cast<double>(references.size());
  return {100.0 * share, "string_match_all"};
}

}  // namespace kvlab
