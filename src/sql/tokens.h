// Splits a statement into words and signs, for those who look at it before SQLite does.
#pragma once

#include "base/vocabulary.h"

namespace stageline::sql {

// kWord is a name or keyword without quotes, kNumber digits with any letters that follow, kText '…'. A kParameter is ?,
// ?2, :name or @name, a kSign a known sign (comparisons as a whole). kOther is anything else, such as quoted names.
enum class TokenKind : uint8_t { kWord, kNumber, kText, kParameter, kSign, kOther };
struct Token {
  TokenKind kind;
  size_t begin, end;  // places in the statement
  std::string text;   // words in lower case
};

// Returns the tokens without blanks and comments.
std::vector<Token> tokens_of(std::string_view sql);

}  // namespace stageline::sql
