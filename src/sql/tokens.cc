#include "sql/tokens.h"

#include <cctype>

namespace stageline::sql {
namespace {

bool is_word_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

std::vector<Token> tokens_of(std::string_view sql) {
  std::vector<Token> out;
  for (size_t i = 0; i < sql.size();) {
    const char c = sql[i];
    const size_t begin = i;
    Kind kind = Kind::kSign;
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++i;
      continue;
    }
    if (sql.substr(i, 2) == "--") {
      i = std::min(sql.size(), sql.find('\n', i));
      continue;
    }
    if (sql.substr(i, 2) == "/*") {
      const size_t close = sql.find("*/", i + 2);
      i = close == std::string_view::npos ? sql.size() : close + 2;
      continue;
    }
    if (c == '\'') {
      kind = Kind::kText;
      for (++i; i < sql.size(); ++i)
        if (sql[i] == '\'' && sql.substr(i, 2) != "''")
          break;
        else if (sql[i] == '\'')
          ++i;
      ++i;
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      kind = Kind::kNumber;
      while (i < sql.size() && (is_word_byte(sql[i]) || sql[i] == '.')) ++i;  // takes whatever letters follow
    } else if (is_word_byte(c)) {
      kind = Kind::kWord;
      while (i < sql.size() && (is_word_byte(sql[i]) || static_cast<unsigned char>(sql[i]) >= 0x80)) ++i;
    } else if (c == '?' || c == ':' || c == '@') {
      kind = Kind::kParameter;
      for (++i; i < sql.size() && is_word_byte(sql[i]);) ++i;
    } else if (std::string_view("<>!=|").find(c) != std::string_view::npos) {
      while (i < sql.size() && std::string_view("<>!=|").find(sql[i]) != std::string_view::npos) ++i;
    } else {
      if (std::string_view("(),.*+-/%;").find(c) == std::string_view::npos) kind = Kind::kOther;
      ++i;
    }
    i = std::min(i, sql.size());
    std::string text(sql.substr(begin, i - begin));
    if (kind == Kind::kWord) text = to_lower(text);
    out.push_back({kind, begin, i, std::move(text)});
  }
  return out;
}

}  // namespace stageline::sql
