#include "base/text.h"

namespace stageline {
namespace {

bool is_ascii_byte(char c) { return static_cast<unsigned char>(c) < 0x80; }

// Decodes the code point at `i` and moves past it. Returns -1 for an invalid byte, and moves past that byte.
int32_t next_code_point(std::string_view s, size_t& i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(s[k]); };
  const unsigned char first = byte(i);
  if (first < 0x80) return s[i++];
  const int length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || i + length > s.size()) return ++i, -1;
  int32_t code = first & (0xff >> (length + 1));
  for (int k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) return ++i, -1;
    code = (code << 6) | (byte(i + k) & 0x3f);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return ++i, -1;
  i += length;
  return code;
}

int letter_distance(std::string_view a, std::string_view b) {
  // Computes Damerau's restricted edit distance. Three rows of the table are enough for it.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int change = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({change, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// In UTF-8 these marks are E2 80 AA to E2 80 AE and E2 81 A6 to E2 81 A9.
bool turns_direction(std::string_view three) {
  if (three.size() < 3 || three[0] != '\xe2') return false;
  const auto last = static_cast<unsigned char>(three[2]);
  return (three[1] == '\x80' && last >= 0xaa && last <= 0xae) || (three[1] == '\x81' && last >= 0xa6 && last <= 0xa9);
}

}  // namespace

int display_width(std::string_view utf8) {
  int width = 0;
  for (size_t i = 0; i < utf8.size();) {
    const int32_t c = next_code_point(utf8, i);
    if (c >= 0x300 && c < 0x370) continue;  // combining marks
    const bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) || (c >= 0xac00 && c < 0xd7a4) ||
                      (c >= 0xf900 && c < 0xfb00) || (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff00 && c < 0xff61) ||
                      (c >= 0xffe0 && c < 0xffe7) || (c >= 0x1f300 && c < 0x1f650) || (c >= 0x20000 && c < 0x40000);
    width += wide ? 2 : 1;
  }
  return width;
}

std::string valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  size_t kept = 0;
  for (size_t i = 0; i < bytes.size();) {
    const size_t from = i;
    if (is_ascii_byte(bytes[i])) {
      i = std::ranges::find_if_not(bytes.begin() + from, bytes.end(), is_ascii_byte) - bytes.begin();
    } else if (next_code_point(bytes, i) < 0) {
      out.append(bytes.substr(kept, from - kept)).append("\uFFFD");
      kept = i;
    }
  }
  return out.append(bytes.substr(kept));
}

size_t character_start(std::string_view text, size_t at) {
  while (at > 0 && at < text.size() && continues_character(text[at])) --at;
  return at;
}

std::string cut_text(std::string_view text, size_t max) {
  return text.size() <= max ? std::string(text) : std::string(text.substr(0, character_start(text, max))) + "…";
}

size_t character_end(std::string_view text, size_t at) {
  do ++at;
  while (at < text.size() && continues_character(text[at]));
  return at;
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = to_lower(c);
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

void append_hex(std::string& text, unsigned char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  text += kDigits[byte >> 4];
  text += kDigits[byte & 15];
}

bool natural_less(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      while (i < a.size() && a[i] == '0') ++i;
      while (j < b.size() && b[j] == '0') ++j;
      size_t ei = i, ej = j;
      while (ei < a.size() && is_digit(a[ei])) ++ei;
      while (ej < b.size() && is_digit(b[ej])) ++ej;
      if (ei - i != ej - j) return ei - i < ej - j;
      const int order = a.substr(i, ei - i).compare(b.substr(j, ej - j));
      if (order != 0) return order < 0;
      i = ei;
      j = ej;
    } else {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
    }
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;  // they differ only in leading zeros; the order must still be strict
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const int allowed = word.size() <= 3 ? 1 : 2;
  int best = allowed + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    const int distance = letter_distance(word, candidate);
    if (distance < best) best = distance, found = candidate;
  }
  if (found.empty() && word.size() >= 3)
    for (const std::string& candidate : candidates)
      if (candidate.starts_with(word)) return candidate;
  return found;
}

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

void append_item(std::string& list, std::string_view item, std::string_view between) {
  if (!list.empty()) list += between;
  list += item;
}

std::string dashed(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '_', '-');
  return out;
}

std::string file_name(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string file_extension(std::string_view path) {
  std::string name = file_name(path);
  for (const char* suffix : {".gz", ".zst"})
    if (name.ends_with(suffix)) name.resize(name.size() - std::string_view(suffix).size());
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::string() : name.substr(dot + 1);
}

std::string terminal_text(std::string_view text, bool lines) {
  const auto harmless = [lines](char c) {
    return (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) || (lines && c == '\n');
  };
  const bool plain = std::ranges::all_of(text, [&](char c) { return harmless(c) && (c & 0x80) == 0; });
  if (plain) return std::string(text);
  std::string out = valid_utf8(text);
  for (size_t i = 0; i < out.size(); ++i)
    if (!harmless(out[i])) out[i] = ' ';
    else if (out[i] == '\xc2' && i + 1 < out.size() && static_cast<unsigned char>(out[i + 1]) < 0xa0)
      out.replace(i, 2, "  ");  // C1 controls are two bytes in UTF-8, C2 80 … C2 9F; some terminals obey them
    else if (turns_direction(std::string_view(out).substr(i))) out.replace(i, 3, kReplacement);
  return out;
}

std::string shell_word(std::string_view path) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           static_cast<unsigned char>(c) >= 0x80 || std::string_view("/._-+,:=@%").find(c) != std::string_view::npos;
  };
  const std::string text = (path.size() > 1 && path.starts_with('-') ? "./" : "") + valid_utf8(path);
  if (!text.empty() && std::ranges::all_of(text, bare)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_words(const std::vector<std::string>& paths) {
  std::string words;
  for (const std::string& path : paths) words += " " + shell_word(path);
  return words;
}

}  // namespace stageline
