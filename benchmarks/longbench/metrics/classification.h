// LongBench's classification metric (classification_score).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvlab {

// 1 / number of class names found in the reply, if the reference is one of them; else 0. Names that
// are part of the reference but not equal to it do not count, except that the original skips the
// name after each one it drops, because it changes the list that it walks along; so does this.
double classification_score(std::u32string_view reply, std::u32string_view reference,
                            const std::vector<std::u32string>& classes);

}  // namespace kvlab
