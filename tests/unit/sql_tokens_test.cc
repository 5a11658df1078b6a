// A statement as words and signs, with what SQLite takes as comments and quotes.
#include <doctest/doctest.h>

#include "sql/tokens.h"

using namespace stageline::sql;

namespace {

std::vector<std::string> texts(std::string_view sql) {
  std::vector<std::string> out;
  for (const Token& token : tokens_of(sql)) out.push_back(token.text);
  return out;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("words are lower case, and comparisons one sign") {
  CHECK(texts("SELECT Name FROM t WHERE a>=1.5e3 AND b<>?2") ==
        Texts{"select", "name", "from", "t", "where", "a", ">=", "1.5e3", "and", "b", "<>", "?2"});
  CHECK(texts("a||b") == Texts{"a", "||", "b"});
  CHECK(texts("") == Texts{});
}

TEST_CASE("a doubled quote stays inside its text") {
  CHECK(texts("'it''s' x") == Texts{"'it''s'", "x"});
  CHECK(texts("'' x") == Texts{"''", "x"});
  CHECK(texts("'--' '/*'") == Texts{"'--'", "'/*'"});
}

TEST_CASE("an open quote or comment takes the rest") {
  CHECK(texts("a 'b c") == Texts{"a", "'b c"});
  CHECK(texts("a 'b''") == Texts{"a", "'b''"});
  CHECK(texts("a /* b c") == Texts{"a"});
  CHECK(texts("a -- b c") == Texts{"a"});
}

TEST_CASE("comments separate, and end at their line or sign") {
  CHECK(texts("a--b\nc") == Texts{"a", "c"});
  CHECK(texts("a/*b*/c/*/d*/e") == Texts{"a", "c", "e"});
}

TEST_CASE("each token says its kind and its place") {
  const std::vector<Token> tokens = tokens_of("f(:x) \"Q\"");
  REQUIRE(tokens.size() == 7);
  CHECK(tokens[0].kind == TokenKind::kWord);
  CHECK(tokens[1].kind == TokenKind::kSign);
  CHECK(tokens[2].kind == TokenKind::kParameter);
  CHECK(tokens[2].text == ":x");
  CHECK(tokens[2].begin == 2);
  CHECK(tokens[2].end == 4);
  CHECK(tokens[4].kind == TokenKind::kOther);  // the quote alone
  CHECK(tokens_of("'t'")[0].kind == TokenKind::kText);
  CHECK(tokens_of("12ab")[0].kind == TokenKind::kNumber);
}
