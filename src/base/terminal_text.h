// Makes text from a trace, a file's name or a flag safe to show to people.
#pragma once

#include <string>
#include <string_view>

namespace stageline {

// The only place that makes such text safe for a terminal, a log or a dialog. Returns valid UTF-8 without characters
// that a terminal obeys. C0 and C1 controls (ESC, BEL, …) and DEL become spaces; marks that change the direction of
// writing (U+202A to U+202E, U+2066 to U+2069) become U+FFFD. With `lines`, line ends are kept: for our own texts of
// several lines.
std::string terminal_text(std::string_view text, bool lines = false);

}  // namespace stageline
