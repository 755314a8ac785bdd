// The plain way to split sentences, for texts or machines without Punkt's parameters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvlab {

// A sentence ends with . ? or !, closing quotes or brackets after it, and white space. The white
// space between sentences is dropped.
std::vector<std::string> simple_sentences(std::string_view text);

}  // namespace kvlab
