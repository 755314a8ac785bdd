// LongBench's metrics over the numbers in a reply (count_score, retrieval_score,
// retrieval_zh_score).
#pragma once

#include <optional>
#include <string_view>

namespace kvlab {

// Share of the reply's numbers (runs of decimal digits) that are written exactly like `number`; 0
// where there is none.
double number_share(std::u32string_view reply, std::u32string_view number);

// The number after the first `word` + digits in a reference ("Paragraph 7", "段落7"); absent where
// the reference has none, which the original does not survive either.
std::optional<std::u32string_view> number_after(std::u32string_view reference,
                                                std::u32string_view word);

}  // namespace kvlab
