// Tables of words: each row has a key and all its words, with blanks between them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace stageline {

template <class Key>
struct WordRow {
  Key key;
  std::string_view words;
};

// Returns the key of the first row with this word, or nothing when no row has it.
template <class Key, size_t N>
constexpr std::optional<Key> key_of_word(const WordRow<Key> (&rows)[N], std::string_view word) {
  if (word.empty() || word.find(' ') != word.npos) return std::nullopt;
  for (const auto& [key, words] : rows)
    for (size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1)) {
      const size_t end = at + word.size();
      if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return key;
    }
  return std::nullopt;
}

}  // namespace stageline
