#include "base/terminal_text.h"

#include <algorithm>

#include "base/text.h"

namespace stageline {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// In UTF-8 these marks are E2 80 AA to E2 80 AE and E2 81 A6 to E2 81 A9.
bool turns_direction(std::string_view three) {
  if (three.size() < 3 || three[0] != '\xe2') return false;
  const auto last = static_cast<unsigned char>(three[2]);
  return (three[1] == '\x80' && last >= 0xaa && last <= 0xae) || (three[1] == '\x81' && last >= 0xa6 && last <= 0xa9);
}

}  // namespace

std::string terminal_text(std::string_view text, bool lines) {
  const auto harmless = [lines](char c) {
    return (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) || (lines && c == '\n');
  };
  const bool plain = std::ranges::all_of(text, [&](char c) { return harmless(c) && (c & 0x80) == 0; });
  if (plain) return std::string(text);
  std::string out = valid_utf8(text);
  for (size_t i = 0; i < out.size(); ++i)
    if (!harmless(out[i]))
      out[i] = ' ';
    else if (out[i] == '\xc2' && i + 1 < out.size() && static_cast<unsigned char>(out[i + 1]) < 0xa0)
      out.replace(i, 2, "  ");  // C1 controls are two bytes in UTF-8, C2 80 … C2 9F; some terminals obey them
    else if (turns_direction(std::string_view(out).substr(i)))
      out.replace(i, 3, kReplacement);
  return out;
}

}  // namespace stageline
