#include "sql/tokens.h"

#include <cctype>

namespace stageline::sql {
namespace {

bool is_word_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

constexpr std::string_view kComparisons = "<>!=|", kSigns = "(),.*+-/%;";

// The end of '…' that begins at `i`. A doubled quote stands for one inside; without an end it is that of the statement.
size_t end_of_text(std::string_view sql, size_t i) {
  do i = sql.find('\'', i + 1) + 1;
  while (i != 0 && i < sql.size() && sql[i] == '\'');
  return i == 0 ? sql.size() : i;
}

// The end of the comment that begins at `i`; `i` where none does.
size_t end_of_comment(std::string_view sql, size_t i) {
  const std::string_view mark = sql.substr(i, 2);
  if (mark == "--") return std::min(sql.size(), sql.find('\n', i));
  if (mark != "/*") return i;
  const size_t close = sql.find("*/", i + 2);
  return close == std::string_view::npos ? sql.size() : close + 2;
}

template <class Belongs> size_t end_of_run(std::string_view sql, size_t i, const Belongs& belongs) {
  while (i < sql.size() && belongs(sql[i])) ++i;
  return i;
}

// The kind of the token that begins at `i`, and its end.
std::pair<TokenKind, size_t> token_at(std::string_view sql, size_t i) {
  const auto is_comparison = [](char c) { return kComparisons.find(c) != std::string_view::npos; };
  const auto is_name_byte = [](char c) { return is_word_byte(c) || static_cast<unsigned char>(c) >= 0x80; };
  const auto is_number_byte = [](char c) { return is_word_byte(c) || c == '.'; };  // takes whatever letters follow
  const char c = sql[i];
  if (c == '\'') return {TokenKind::kText, end_of_text(sql, i)};
  if (std::isdigit(static_cast<unsigned char>(c))) return {TokenKind::kNumber, end_of_run(sql, i, is_number_byte)};
  if (is_word_byte(c)) return {TokenKind::kWord, end_of_run(sql, i, is_name_byte)};
  if (c == '?' || c == ':' || c == '@') return {TokenKind::kParameter, end_of_run(sql, i + 1, is_word_byte)};
  if (is_comparison(c)) return {TokenKind::kSign, end_of_run(sql, i, is_comparison)};
  return {kSigns.find(c) == std::string_view::npos ? TokenKind::kOther : TokenKind::kSign, i + 1};
}

}  // namespace

std::vector<Token> tokens_of(std::string_view sql) {
  std::vector<Token> out;
  for (size_t i = 0; i < sql.size();) {
    const size_t after_comment = end_of_comment(sql, i);
    if (after_comment > i || std::isspace(static_cast<unsigned char>(sql[i]))) {
      i = std::max(after_comment, i + 1);
      continue;
    }
    const auto [kind, end] = token_at(sql, i);
    std::string text(sql.substr(i, end - i));
    if (kind == TokenKind::kWord) text = to_lower(text);
    out.push_back({kind, i, end, std::move(text)});
    i = end;
  }
  return out;
}

}  // namespace stageline::sql
