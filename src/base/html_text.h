// Escapes text for use inside an HTML element or attribute.
#pragma once

#include <string>
#include <string_view>

namespace stageline {

// Returns the text with markup escaped and NUL left out. Other bytes stay as they are, so text from outside has to go
// through valid_utf8() first. O(bytes).
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
