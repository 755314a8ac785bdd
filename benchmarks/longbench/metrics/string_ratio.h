// The two meanings of fuzzywuzzy's fuzz.ratio, which depends on an optional package.
#pragma once

#include <string_view>

namespace kvlab {

// Python's difflib.SequenceMatcher(None, a, b).ratio(), "autojunk" included: where `b` has 200 or
// more characters, those that make up more than 1 % of it start no match. Not symmetric.
double difflib_ratio(std::u32string_view a, std::u32string_view b);

// Levenshtein.ratio(a, b): 1 - (insertions + deletions) / (len(a) + len(b)).
double levenshtein_ratio(std::u32string_view a, std::u32string_view b);

}  // namespace kvlab
