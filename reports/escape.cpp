#include "reports/escape.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include "harness/text/utf8.h"

namespace kvlab {
namespace {

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

// Reorders text on screen: a name could be made to look like another.
bool is_bidi_control(char32_t c) {
  return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  for (const char32_t c : to_code_points(text)) {
    width += utf8proc_charwidth(static_cast<utf8proc_int32_t>(c));
  }
  return width;
}

std::string truncate_to_width(std::string_view text, int width) {
  if (display_width(text) <= width) {
    return std::string(text);
  }
  std::string cut;
  int used = 0;
  for (const char32_t c : to_code_points(text)) {
    const int columns = utf8proc_charwidth(static_cast<utf8proc_int32_t>(c));
    if (used + columns > width - 1) {
      break;
    }
    used += columns;
    append_utf8(c, cut);
  }
  return cut + "…";
}

std::string plain_line(std::string_view text) {
  std::string line;
  for (const char32_t c : to_code_points(to_valid_utf8(text))) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else if (c == '\r') {
      line += "\\r";
    } else if (is_control(c)) {
      line += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (is_bidi_control(c) || c == 0x2028 || c == 0x2029) {
      line += fmt::format("\\u{{{:x}}}", static_cast<uint32_t>(c));
    } else {
      append_utf8(c, line);
    }
  }
  return line;
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (const char c : plain_line(text)) {
    // Everything that starts markup, a link, raw HTML, an entity or the next cell.
    if (std::string_view("\\`*_{}[]<>#|~&!$").find(c) != std::string_view::npos) {
      out += '\\';
    }
    out += c;
  }
  return out;
}

std::string escape_latex(std::string_view text) {
  std::string out;
  for (const char32_t c : to_code_points(plain_line(text))) {
    switch (c) {
      case '\\':
        out += "\\textbackslash{}";
        break;
      case '{':
      case '}':
      case '$':
      case '&':
      case '#':
      case '_':
      case '%':
        out += '\\';
        out += static_cast<char>(c);
        break;
      case '~':
        out += "\\textasciitilde{}";
        break;
      case '^':
        out += "\\textasciicircum{}";
        break;
      case '<':
        out += "\\textless{}";
        break;
      case '>':
        out += "\\textgreater{}";
        break;
      case '|':
        out += "\\textbar{}";
        break;
      case '"':
        out += "\\textquotedbl{}";
        break;
      case '`':
        out += "\\textasciigrave{}";
        break;
      case '\'':
        out += "\\textquotesingle{}";
        break;
      case '-':
        out += "-{}";  // no ligatures into dashes
        break;
      case '[':
      case '*':
        // After the end of a row these would be arguments of it.
        out += '{';
        out += static_cast<char>(c);
        out += '}';
        break;
      case 0xb1:
        out += "$\\pm$";
        break;
      case 0x2013:
        out += "--";
        break;
      case 0x2026:
        out += "\\ldots{}";
        break;
      case 0xd7:
        out += "$\\times$";
        break;
      default:
        if (c < 0x80) {
          out += static_cast<char>(c);
        } else {
          // pdflatex stops at most letters beyond its fonts; the code point says what was there.
          out += fmt::format("{{[}}U+{:04X}]", static_cast<uint32_t>(c));
        }
    }
  }
  return out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : plain_line(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string csv_text(std::string_view text) {
  std::string valid = plain_line(text);
  if (!valid.empty() && std::string_view("=+-@").find(valid.front()) != std::string_view::npos) {
    valid.insert(valid.begin(), '\'');
  }
  if (valid.find_first_of(",\"; ") == std::string::npos) {
    return valid;
  }
  std::string out = "\"";
  for (const char c : valid) {
    out += c;
    if (c == '"') {
      out += '"';
    }
  }
  return out + "\"";
}

}  // namespace kvlab
