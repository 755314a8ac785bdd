// F1 over bags of words between a reply and one reference answer, as LongBench scores its
// question answering tasks (qa_f1_score and qa_f1_zh_score of its metrics.py).
#pragma once

#include <string_view>

#include "benchmarks/longbench/metrics/jieba.h"

namespace kvlab {

// Lower-cased, ASCII punctuation deleted, the articles a/an/the replaced by a space, split at white
// space. 0..1; 0 where either side has no words.
double answer_f1(std::u32string_view reply, std::u32string_view reference);

// Words cut by jieba; each is lower-cased and loses punctuation (ASCII and Chinese) and white
// space.
double answer_f1_zh(std::u32string_view reply, std::u32string_view reference, const Jieba& jieba);

}  // namespace kvlab
