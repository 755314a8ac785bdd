// ROUGE-L as the PyPI package rouge 1.0.1 computes it with its defaults, which is what LongBench
// uses; it is not Google's rouge-score.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvlab {

// F of the summary-level ROUGE-L, 0..1. Sentences end at "."; words are split at white space, with
// no lower-casing or stemming. Precision and recall count distinct words: those on a longest common
// subsequence of any pair of sentences, among all of a side's. A side without any character that
// is not "." gives 0, as the package's exception does.
//
// The package walks back along the subsequence recursively, and LongBench turns the exception of a
// walk that is too deep into 0. `max_walk_frames` is the number of nested calls that still fit
// (rouge_walk_frames()); 0 means no limit.
double rouge_l(std::u32string_view reply, std::u32string_view reference, int64_t max_walk_frames);

// Python's recursion limit less the frames below the walk when LongBench's eval.py scores a reply:
// 9 for English tasks, 10 for Chinese ones (measured with Python 3.11). `recursion_limit` 0 gives
// 0.
int64_t rouge_walk_frames(int64_t recursion_limit, bool chinese);

}  // namespace kvlab
