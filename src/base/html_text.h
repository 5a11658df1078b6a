// Text inside an HTML element or attribute.
#pragma once

#include <string>
#include <string_view>

namespace stageline {

// Markup escaped, NUL left out; other bytes as they are: valid_utf8() first where the text is not ours. O(bytes).
inline std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\0': break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace stageline
