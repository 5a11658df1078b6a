#include "base/csv.h"

namespace stageline {
namespace {

// Returns true for text that a spreadsheet would execute instead of showing it: the name of an operator may look like a
// formula.
bool is_formula(std::string_view text) {
  if (text.size() < 2) return false;  // a sign alone computes nothing
  // These wide characters come from Chinese and Japanese keyboards; a spreadsheet treats some of them like the narrow
  // ones.
  for (const std::string_view begin : {"＝", "＋", "－", "＠"})
    if (text.starts_with(begin)) return true;
  return std::string_view("=+-@\t\r\n").find(text[0]) != std::string_view::npos && !parse_double(text);
}

}  // namespace

void append_csv_field(std::string& out, std::string_view text) {
  if (is_formula(text)) {
    append_csv_field(out, "'" + std::string(text));
    return;
  }
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

bool next_csv_record(std::string_view& rest, std::vector<std::string_view>& fields, std::vector<std::string>& storage,
                     int64_t* lines, char separator) {
  fields.clear();
  storage.clear();
  // The capacity is reserved because views into it must stay valid.
  storage.reserve(rest.size() < 4096 ? rest.size() + 1 : 4096);
  if (rest.empty()) return false;
  size_t i = 0;
  for (;;) {
    if (i < rest.size() && rest[i] == '"' && storage.size() < storage.capacity()) {
      std::string text;
      for (++i; i < rest.size(); ++i) {
        if (rest[i] == '"' && (++i == rest.size() || rest[i] != '"')) break;  // a doubled quote is one of the text
        if (rest[i] == '\n') ++*lines;
        text += rest[i];
      }
      while (i < rest.size() && rest[i] != separator && rest[i] != '\n' && rest[i] != '\r') text += rest[i++];
      fields.push_back(storage.emplace_back(std::move(text)));
    } else {
      const size_t from = i;
      while (i < rest.size() && rest[i] != separator && rest[i] != '\n' && rest[i] != '\r') ++i;
      fields.push_back(rest.substr(from, i - from));
    }
    if (i < rest.size() && rest[i] == separator) {
      ++i;
      continue;
    }
    if (i < rest.size() && rest[i] == '\r') ++i;
    if (i < rest.size() && rest[i] == '\n') ++i;
    ++*lines;
    rest.remove_prefix(i);
    return true;
  }
}

}  // namespace stageline
