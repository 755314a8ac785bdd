// LongBench's code completion metric (code_sim_score).
#pragma once

#include <string_view>

namespace kvlab {

// What stands behind fuzzywuzzy's fuzz.ratio: Python's difflib, unless the optional package
// python-Levenshtein is installed. LongBench's published numbers are difflib's.
enum class CodeRatio { kDifflib, kLevenshtein };

// 0..1 in steps of 0.01: the ratio between `reference` and the first line of the reply that holds
// none of "`", "#" and "//" (after leading newlines; an empty line if there is no such line). Equal
// texts give 1, even when both are empty; one empty side gives 0.
double code_similarity(std::u32string_view reply, std::u32string_view reference, CodeRatio ratio);

}  // namespace kvlab
