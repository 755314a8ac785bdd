#include "benchmarks/longbench/metrics/classification.h"

#include <algorithm>

namespace kvlab {
namespace {

bool contains(std::u32string_view text, std::u32string_view part) {
  return text.find(part) != std::u32string_view::npos;
}

}  // namespace

double classification_score(std::u32string_view reply, std::u32string_view reference,
                            const std::vector<std::u32string>& classes) {
  std::vector<std::u32string_view> found;
  for (const std::u32string& name : classes) {
    if (contains(reply, name)) {
      found.push_back(name);
    }
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const std::u32string_view name = found[i];
    if (contains(reference, name) && name != reference) {
      found.erase(std::find(found.begin(), found.end(), name));  // list.remove(): the first equal
    }
  }
  if (std::find(found.begin(), found.end(), reference) == found.end()) {
    return 0;
  }
  return 1.0 / static_cast<double>(found.size());
}

}  // namespace kvlab
