// Paths inside commands that a person copies into a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stageline {

// Returns the path as one word of a POSIX shell, quoted if it has characters that a shell would change. A path with a
// minus in front gets ./, because commands would read it as a flag. Invalid UTF-8 becomes U+FFFD, as everywhere on
// screen.
std::string shell_word(std::string_view path);

// Returns " WORD" for every path.
std::string shell_words(const std::vector<std::string>& paths);

}  // namespace stageline
