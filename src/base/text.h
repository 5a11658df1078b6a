// Text helpers: UTF-8 width and characters, natural order, near-misses, lists.
#pragma once

#include "base/std.h"

namespace stageline {

// Returns the columns that a text takes in a terminal: two for wide characters such as CJK, 0 for combining marks.
// Invalid bytes count 1.
int display_width(std::string_view utf8);
// Returns the text with invalid UTF-8 replaced by U+FFFD, so that output is always valid.
std::string valid_utf8(std::string_view bytes);

// Whether a byte belongs to a UTF-8 character that began before it.
constexpr bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }
// Returns `at`, or where the character begins within which `at` lies: text.substr(0, character_start(text, most)) cuts
// no character in two.
size_t character_start(std::string_view text, size_t at);
// Returns the text, or its first `max` bytes without half a character and "…".
std::string cut_text(std::string_view text, size_t max);
// Returns where the character ends that begins at `at`.
size_t character_end(std::string_view text, size_t at);

// Changes ASCII letters only, whatever the locale.
constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string to_lower(std::string_view text);

// Whether JSON takes a character as blank.
constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
inline bool mentions(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

int hex_digit(char c);  // 0 to 15; −1: it is none
// Appends two hexadecimal digits, in small letters.
void append_hex(std::string& text, unsigned char byte);

// Orders texts so that "workerlog.2" is before "workerlog.10": runs of digits compare as numbers.
bool natural_less(std::string_view a, std::string_view b);

// Returns the candidate that is at most two edits from `word` (a transposition counts as one), or "" when there is
// none.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
// Appends an item to a list such as "a, b".
void append_item(std::string& list, std::string_view item, std::string_view between = ", ");
// Replaces `_` by `-`: "analyse_thing" -> "analyse-thing". Flags and names accept both.
std::string dashed(std::string_view name);
std::string file_name(std::string_view path);       // "a/b.json" -> "b.json"
std::string file_extension(std::string_view path);  // "a/b.json.gz" -> "json" (suffixes of compression are skipped)

// The only place that makes such text safe for a terminal, a log or a dialog. Returns valid UTF-8 without characters
// that a terminal obeys. C0 and C1 controls (ESC, BEL, …) and DEL become spaces; marks that change the direction of
// writing (U+202A to U+202E, U+2066 to U+2069) become U+FFFD. With `lines`, line ends are kept: for our own texts of
// several lines.
std::string terminal_text(std::string_view text, bool lines = false);

// Returns the path as one word of a POSIX shell, quoted if it has characters that a shell would change. A path with a
// minus in front gets ./, because commands would read it as a flag. Invalid UTF-8 becomes U+FFFD, as everywhere on
// screen.
std::string shell_word(std::string_view path);

// Returns " WORD" for every path.
std::string shell_words(const std::vector<std::string>& paths);

}  // namespace stageline
