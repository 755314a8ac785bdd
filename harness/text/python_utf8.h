// Rules of Python's strings and files on UTF-8 text, which foreign generators and file formats
// depend on. (python_text.h has those on code points.) Input is valid UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/text/replace.h"

namespace kvlab {

// str.strip() without arguments.
std::string_view python_strip(std::string_view text);

// re.sub(r"\s+", " ", text).split(" "): words between white space, with an empty first or last
// word where the text starts or ends with white space.
std::vector<std::string> python_words(std::string_view text);

// The lines of a text file without their trailing white space (rstrip), as readlines gives them.
std::vector<std::string> rstripped_lines(std::string_view text);

// Code points: Python's len().
size_t python_length(std::string_view text);

// A JSON string as json.dumps(text) writes it: ASCII only, other code points as \uXXXX.
std::string python_json_string(std::string_view text);

}  // namespace kvlab
