// Classes of code points, by utf8proc's categories.
#pragma once

namespace kvlab {

bool is_white_space(char32_t code_point);     // Unicode's White_Space
bool is_numeric(char32_t code_point);         // Nd, Nl, No
bool is_word_character(char32_t code_point);  // letters, marks, digits, connectors, joiners
char32_t lower_case(char32_t code_point);     // simple mapping

}  // namespace kvlab
