#include "base/json_writer.h"

#include <cstdio>

namespace stageline {
namespace {

void append_escape(std::string& out, unsigned code) {
  char buffer[16];
  snprintf(buffer, sizeof buffer, "\\u%04x", code);
  out += buffer;
}

void append_code_point_escaped(std::string& out, std::string_view utf8) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(utf8[i]); };
  // The leading byte of a character of n bytes has n ones, a zero, and then the first bits of the code point.
  unsigned code = at(0) & (0xffu >> (utf8.size() + 1));
  for (size_t i = 1; i < utf8.size(); ++i) code = (code << 6) | (at(i) & 0x3fu);
  if (code >= 0x10000) {
    append_escape(out, 0xd800 + ((code - 0x10000) >> 10));
    append_escape(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
  } else {
    append_escape(out, code);
  }
}

// Can be written as it is, whatever comes before and after.
bool is_plain(char c) { return c >= ' ' && c != '"' && c != '\\' && c != '/' && c != 0x7f; }

constexpr std::string_view kEscaped = "\"\\\n\t\r", kLetters = "\"\\ntr";

}  // namespace

void append_json_string(std::string& out, std::string_view text, bool ascii) {
  out += '"';
  std::string repaired;  // only a text that is not ASCII is copied
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
    text = repaired = valid_utf8(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t from = i;
    while (i < text.size() && is_plain(text[i])) ++i;
    out.append(text.substr(from, i - from));
    if (i == text.size()) break;
    const auto c = static_cast<unsigned char>(text[i]);
    if (const size_t known = kEscaped.find(text[i]); known != std::string_view::npos) {
      out.append({'\\', kLetters[known]});
    } else if (c < 0x20 || c == 0x7f) {
      append_escape(out, c);
    } else if (c == '/' && i > 0 && text[i - 1] == '<') {
      out += "\\/";
    } else if (c >= 0x80 && ascii) {
      const size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
      append_code_point_escaped(out, text.substr(i, length));
      i += length - 1;
    } else {
      out += static_cast<char>(c);
    }
  }
  out += '"';
}

void JsonWriter::separate() {
  if (need_comma_) out_ += ',';
  need_comma_ = false;
}

JsonWriter& JsonWriter::open(char c) {
  separate();
  out_ += c;
  return *this;
}

JsonWriter& JsonWriter::close(char c) {
  out_ += c;
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::field(std::string_view name, const Text& text) {
  const std::string key(name);
  return field(key + "_en", text.en).field(key + "_zh", text.zh);
}

JsonWriter& JsonWriter::field_ns(std::string_view name, double ns) {
  return maybe(name, std::isfinite(ns), std::isfinite(ns) ? std::llround(std::clamp(ns, -4e18, 4e18)) : 0);
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_ += ':';
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(out_, text);
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::integer(int64_t number) { return raw(std::to_string(number)); }
JsonWriter& JsonWriter::value(double number) { return raw(json_double(number)); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  need_comma_ = true;
  return *this;
}

std::string json_quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace stageline
