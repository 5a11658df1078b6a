#include "base/shell_word.h"

#include <algorithm>

#include "base/text.h"

namespace stageline {

std::string shell_word(std::string_view path) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           static_cast<unsigned char>(c) >= 0x80 || std::string_view("/._-+,:=@%").find(c) != std::string_view::npos;
  };
  const std::string text = (path.size() > 1 && path.starts_with('-') ? "./" : "") + valid_utf8(path);
  if (!text.empty() && std::ranges::all_of(text, bare)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_words(const std::vector<std::string>& paths) {
  std::string words;
  for (const std::string& path : paths) words += " " + shell_word(path);
  return words;
}

}  // namespace stageline
