#include "datasets/sentences.h"

namespace kvlab {

std::vector<std::string> simple_sentences(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\r\f\v";
  std::vector<std::string> sentences;
  size_t begin = text.find_first_not_of(kSpaces);
  while (begin != text.npos) {
    size_t end = begin;
    while (end < text.size()) {
      end = text.find_first_of(".?!", end);
      if (end == text.npos) {
        end = text.size();
        break;
      }
      end = text.find_first_not_of(".?!\"')]}", end);
      if (end == text.npos) {
        end = text.size();
      }
      if (end == text.size() || kSpaces.find(text[end]) != kSpaces.npos) {
        break;
      }
    }
    const size_t last = text.find_last_not_of(kSpaces, end - 1);
    sentences.emplace_back(text.substr(begin, last + 1 - begin));
    begin = text.find_first_not_of(kSpaces, end);
  }
  return sentences;
}

}  // namespace kvlab
