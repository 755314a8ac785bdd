// Foreign text (names, replies, reasons) made safe for each output format. All input is treated as
// UTF-8; control characters never pass.
#pragma once

#include <string>
#include <string_view>

namespace kvlab {

// Columns a terminal needs for the text (utf8proc: CJK is 2, combining marks 0).
int display_width(std::string_view text);

// At most `width` columns, with an ellipsis where something was cut.
std::string truncate_to_width(std::string_view text, int width);

// One line for terminals: newlines and tabs as \n and \t, other control characters (also the
// escape that starts terminal sequences, and bidirectional overrides) as \x1b or \u{202e}.
std::string plain_line(std::string_view text);

std::string escape_markdown(std::string_view text);  // for a cell of a pipe table
std::string escape_latex(std::string_view text);
std::string escape_html(std::string_view text);  // for text and quoted attributes

// A field of RFC 4180, on one line. Text that a spreadsheet would run as a formula (= + - @ at the
// start) is led by an apostrophe.
std::string csv_text(std::string_view text);

}  // namespace kvlab
