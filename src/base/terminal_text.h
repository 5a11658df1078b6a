// Text from a trace, a file's name or a flag on its way to people.
#pragma once

#include <string>
#include <string_view>

namespace stageline {

// The one place that makes such text fit for a terminal, a log or a dialog: valid UTF-8 without characters that a
// terminal obeys. C0 and C1 controls (ESC, BEL, …) and DEL become spaces, marks that turn the direction of writing
// (U+202A to U+202E, U+2066 to U+2069) U+FFFD. `lines`: line ends stay, for text of several lines that is ours.
std::string terminal_text(std::string_view text, bool lines = false);

}  // namespace stageline
