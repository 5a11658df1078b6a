// A statement as words and signs, for who looks at it before SQLite does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stageline::sql {

// kWord: a name or a keyword without quotes; kNumber: with whatever letters follow; kText: '…'; kParameter: ?, ?2,
// :name, @name; kSign: of known signs, comparisons whole; kOther: anything else, quoted names among it.
enum class Kind : uint8_t { kWord, kNumber, kText, kParameter, kSign, kOther };
struct Token {
  Kind kind;
  size_t begin, end;  // in the statement
  std::string text;   // of words in small letters
};

// Without blanks and comments.
std::vector<Token> tokens_of(std::string_view sql);

}  // namespace stageline::sql
