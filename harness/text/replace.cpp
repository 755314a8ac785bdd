#include "harness/text/replace.h"

namespace kvlab {

std::string replace_all(std::string_view text, std::string_view literal, std::string_view content) {
  if (literal.empty()) {
    return std::string(text);
  }
  std::string out;
  out.reserve(text.size());
  size_t from = 0;
  for (size_t at = text.find(literal); at != std::string_view::npos;
       at = text.find(literal, from)) {
    out.append(text.substr(from, at - from)).append(content);
    from = at + literal.size();
  }
  out.append(text.substr(from));
  return out;
}

}  // namespace kvlab
