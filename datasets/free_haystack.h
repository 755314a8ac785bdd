// A haystack that everyone has: plain prose made from the word lists by fixed rules, where the
// texts that RULER uses may not be shipped. Never the same data set as RULER's essays.
#pragma once

#include "datasets/haystack.h"
#include "datasets/word_lists.h"

namespace kvlab {

// About 100,000 words; the same text for the same word lists. Named "kvlab-prose-1".
Haystack make_free_haystack(const WordLists& lists);

}  // namespace kvlab
