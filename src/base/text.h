// Text helpers: UTF-8 width, natural order, near-misses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

// Columns a terminal needs: wide for CJK, 0 for combining marks. Invalid bytes count 1.
int display_width(std::string_view utf8);
// Invalid UTF-8 replaced by U+FFFD, so that output is always valid.
std::string valid_utf8(std::string_view bytes);

// "workerlog.2" before "workerlog.10": runs of digits compare as numbers.
bool natural_less(std::string_view a, std::string_view b);

// The candidate within two edits (transpositions count one) of `word`, or "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
// "analyse_thing" -> "analyse-thing": flags and names accept `_` for `-`.
std::string dashed(std::string_view name);
std::string file_name(std::string_view path);       // "a/b.json" -> "b.json"
std::string file_extension(std::string_view path);  // "a/b.json.gz" -> "json" (compression suffixes skipped)

}  // namespace stageline
