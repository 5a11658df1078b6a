#include "base/json_members.h"

#include "base/json_events.h"

namespace stageline {
namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr std::string_view kBlanks = " \t\r\n";

size_t after_quoted(std::string_view text, size_t quote) {
  size_t at = quote + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at < text.size() ? at + 1 : kNone;
}

// Returns the index after the value that begins at text[at]; kNone when the text ends inside the value.
size_t after_value(std::string_view text, size_t at) {
  if (text[at] == '{' || text[at] == '[') return after_closing_brace(text, at);
  if (text[at] == '"') return after_quoted(text, at);
  return text.find_first_of(",}]\r\n", at);
}

}  // namespace

std::vector<JsonMember> json_members(std::string_view text, size_t limit) {
  std::vector<JsonMember> out;
  size_t at = text.find_first_not_of(kBlanks);
  if (at == kNone || (text[at] != '{' && text[at] != '[')) return out;
  const bool object = text[at] == '{';
  ++at;
  while (out.size() < limit) {
    at = text.find_first_not_of(" \t\r\n,", at);
    if (at == kNone || text[at] == '}' || text[at] == ']') break;
    JsonMember member;
    if (object) {
      if (text[at] != '"') break;
      const size_t close = after_quoted(text, at);
      if (close == kNone) break;
      member.key = text.substr(at + 1, close - at - 2);
      at = text.find_first_not_of(kBlanks, close);
      if (at == kNone || text[at] != ':') break;
      at = text.find_first_not_of(kBlanks, at + 1);
      if (at == kNone || text[at] == ',' || text[at] == '}') continue;
    }
    const size_t end = after_value(text, at);
    member.whole = end != kNone;
    member.value = trim(text.substr(at, end == kNone ? end : end - at));
    out.push_back(member);
    if (end == kNone) break;
    at = end;
  }
  return out;
}

std::string_view json_member(std::string_view object, std::string_view key) {
  std::string_view found;
  for (const JsonMember& member : json_members(object))
    if (member.key == key) found = member.value;
  return found;
}

std::string json_text(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return std::string(value);
  value = value.substr(1, value.size() - 2);
  std::string out;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\' && i + 1 < value.size()) ++i;
    out += value[i];
  }
  return valid_utf8(out);
}

std::optional<int64_t> json_integer(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
  return parse_int(trim(value));
}

}  // namespace stageline
