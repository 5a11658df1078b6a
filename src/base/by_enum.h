// Arrays with one element for each value of an enum, which is its subscript: the value of another enum does not
// compile.
#pragma once

#include "base/std.h"

namespace stageline {

// Values of Enum are 0 … N − 1. A loop over all of them may count.
template <class Enum, class T, size_t N> struct ByEnum : std::array<T, N> {
  using std::array<T, N>::operator[];
  constexpr T& operator[](Enum value) { return (*this)[static_cast<size_t>(value)]; }
  constexpr const T& operator[](Enum value) const { return (*this)[static_cast<size_t>(value)]; }
};

// Returns the texts of all values of an enum, in its order. `last` is its last value, so that a text too few or too
// many does not compile.
template <auto last, class Text = std::string_view, size_t N> constexpr auto texts_by(const Text (&texts)[N]) {
  static_assert(N == static_cast<size_t>(last) + 1);
  return ByEnum<decltype(last), Text, N>{std::to_array(texts)};
}

// Tables of words: each row has a key and all its words, with blanks between them.
template <class Key> struct WordRow {
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
