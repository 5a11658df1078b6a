#include "base/json_events.h"
#include "readers/kineto/chunk_parser.h"

namespace stageline::kineto {
namespace {

constexpr size_t kNone = std::string_view::npos;

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}
// Returns where a number or bare word ends.
size_t after_word(std::string_view text, size_t at) {
  while (at < text.size() && !is_blank(text[at]) && std::string_view(",:{}[]\"").find(text[at]) == kNone) ++at;
  return at;
}
// Returns the closing quote of the text that begins at text[at], by JSON's rules.
size_t closing_quote(std::string_view text, size_t at) {
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at < text.size() ? at : kNone;
}

bool is_no_number(std::string_view word) {
  const size_t sign = !word.empty() && (word[0] == '-' || word[0] == '+') ? 1 : 0;
  word.remove_prefix(sign);
  for (const std::string_view known : {"NaN", "nan", "inf", "Inf", "Infinity", "infinity", "N/A", "None", "-nan"})
    if (word == known) return true;
  return false;
}

// Parses the four hexadecimal digits at text[at]; −1 when they are none.
int32_t hex4(std::string_view text, size_t at) {
  if (at + 4 > text.size()) return -1;
  int32_t value = 0;
  for (size_t i = at; i < at + 4; ++i) {
    const int digit = hex_digit(text[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

void put_utf8(uint32_t c, std::string& out) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

// Returns true when every backslash begins one of JSON's escapes. A writer that left one backslash unescaped
// ("C:\data") escaped none, so then all of them stand for themselves.
bool escapes_are_sound(std::string_view raw) {
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') continue;
    if (++i == raw.size()) return false;
    if (raw[i] == 'u' ? hex4(raw, i + 1) < 0 : std::string_view("\"\\/bfnrt").find(raw[i]) == kNone) return false;
  }
  return true;
}

void unescape(std::string_view raw, std::string& out) {
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out += raw[i];
      continue;
    }
    switch (raw[++i]) {
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      case 'u': {
        uint32_t c = hex4(raw, i + 1);
        i += 4;
        if (c >= 0xd800 && c < 0xdc00 && i + 2 < raw.size() && raw[i + 1] == '\\' && raw[i + 2] == 'u') {
          const int32_t low = hex4(raw, i + 3);
          if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            i += 6;
          }
        }
        put_utf8(c >= 0xd800 && c < 0xe000 ? 0xfffd : c, out);
        break;
      }
      default: out += raw[i];
    }
  }
}

// Returns the content of quotes as text: unescaped, valid UTF-8. Where it differs from `raw` it is kept in `scratch`,
// which must have room (a byte becomes three at most).
std::string_view clean(std::string_view raw, std::string& scratch) {
  const bool ascii = std::ranges::none_of(raw, [](char c) { return (c & 0x80) != 0; });
  const bool escaped = raw.find('\\') != kNone;
  if (ascii && !escaped) return raw;
  const size_t begin = scratch.size();
  if (escaped && escapes_are_sound(raw)) {
    unescape(raw, scratch);
  } else {
    for (size_t i = 0; i < raw.size(); ++i)  // only a quote can have been escaped
      if (raw[i] != '\\' || i + 1 == raw.size() || raw[i + 1] != '"') scratch += raw[i];
  }
  if (!ascii) {
    const std::string valid = valid_utf8(std::string_view(scratch).substr(begin));
    scratch.resize(begin);
    scratch += valid;
  }
  return std::string_view(scratch).substr(begin);
}

// Returns a number or word as set_field() expects it; a time that is not a number becomes "".
std::string_view time_word(std::string_view key, std::string_view word) {
  const bool no_time = (key == "ts" || key == "dur") && is_no_number(word);
  return word == "null" || no_time ? std::string_view() : word;
}

}  // namespace

// ---- first pass: structure as in JSON; values and commas are forgiven ----------------------------------------

class TolerantParser::Strict {
 public:
  Strict(std::string_view text, std::string& scratch, rows::Event& event)
      : text_(text), scratch_(scratch), event_(event) {}

  // Returns false when the structure is broken.
  bool run() {
    if (text_.empty() || text_[0] != '{') return false;
    at_ = 1;
    if (!members(true) || !array_goes_on()) return false;
    end = at_;
    return true;
  }

  Fault fault = Fault::kNone;
  size_t end = 0;

 private:
  // True when the event is followed by the end, by another event, or by the end of the array. Otherwise the brace was
  // inside a text whose quotes were damaged.
  bool array_goes_on() const {
    size_t next = skip_space(text_, at_);
    if (next < text_.size() && text_[next] == ',') next = skip_space(text_, next + 1);
    if (next >= text_.size() || text_[next] == ']') return true;
    if (text_[next] != '{') return false;
    const size_t key = skip_space(text_, next + 1);
    if (key >= text_.size() || text_[key] == '}') return true;
    if (text_[key] != '"') return false;
    const size_t close = closing_quote(text_, key + 1);
    if (close == kNone) return true;  // the text ends within the next event
    const size_t colon = skip_space(text_, close + 1);
    return colon >= text_.size() || text_[colon] == ':';
  }

  // Goes from after the opening brace to after the closing one.
  bool members(bool top) {
    for (bool comma = true;; comma = false) {
      for (at_ = skip_space(text_, at_); at_ < text_.size() && text_[at_] == ','; at_ = skip_space(text_, at_ + 1))
        comma = true;
      if (at_ == text_.size()) return top && text_is_over();
      if (text_[at_] == '}') {
        ++at_;
        return true;
      }
      // The array closes although the event did not.
      if (top && text_[at_] == ']') return event_.phase != '\0';
      if (!comma || text_[at_] != '"') return false;
      const size_t close = closing_quote(text_, at_ + 1);
      if (close == kNone) return false;
      const std::string_view key = clean(text_.substr(at_ + 1, close - at_ - 1), scratch_);
      at_ = skip_space(text_, close + 1);
      if (at_ == text_.size() || text_[at_] != ':') return false;
      at_ = skip_space(text_, at_ + 1);
      if (!value(top, key)) return false;
    }
  }

  // Returns true when the text ended before the event's brace but the arguments, which come last, are complete.
  bool text_is_over() const {
    const size_t last = text_.find_last_not_of(" \t\r\n,");
    return last != kNone && last > 0 && text_[last] == '}';
  }

  bool value(bool top, std::string_view key) {
    if (at_ == text_.size()) return false;
    const char c = text_[at_];
    if (c == '{' && top && key == "args") {
      const size_t open = at_++;
      if (!members(false)) return false;
      event_.args = text_.substr(open, at_ - open);
      return true;
    }
    if (c == '{' || c == '[') {
      const size_t open = at_;
      if (!skip_nested()) return false;
      if (const rows::ArgKey array = top ? rows::ArgKey::kNone : rows::arg_key(key);
          c == '[' && rows::arg_field(array).array)
        rows::set_arg(array, text_.substr(open, at_ - open), event_);
      return true;
    }
    std::string_view value_text;
    if (c == '"') {
      const size_t close = closing_quote(text_, at_ + 1);
      if (close == kNone) return false;
      const std::string_view raw = text_.substr(at_ + 1, close - at_ - 1);
      at_ = close + 1;
      if (!wanted(top, key)) return true;
      value_text = clean(raw, scratch_);
    } else {
      const size_t close = after_word(text_, at_);
      value_text = text_.substr(at_, close - at_);
      at_ = close;
      if (at_ == text_.size()) return false;  // the text may be cut inside the value
      if (value_text.empty()) return true;    // a key without a value: "key": ,
      if (!wanted(top, key)) return true;
      value_text = top ? time_word(key, value_text) : value_text == "null" ? std::string_view() : value_text;
    }
    if (!top) rows::set_arg(rows::arg_key(key), value_text, event_);
    else if (!set_field(key, value_text, event_)) fault = Fault::kBadField;
    return true;
  }

  static bool wanted(bool top, std::string_view key) {
    return top ? is_field(key) : rows::arg_key(key) != rows::ArgKey::kNone;
  }

  bool skip_nested() {
    int64_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        const size_t close = closing_quote(text_, at_ + 1);
        if (close == kNone) return false;
        at_ = skip_space(text_, close + 1);
        if (at_ < text_.size() && std::string_view(",:]}").find(text_[at_]) == kNone) return false;
        continue;
      }
      ++at_;
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) return true;
    }
    return false;
  }

  std::string_view text_;
  std::string& scratch_;
  rows::Event& event_;
  size_t at_ = 0;
};

// ---- second pass: looks for the names that Kineto writes ------------------------------------------------

class TolerantParser::Anchored {
 public:
  Anchored(std::string_view text, std::string& scratch, rows::Event& event)
      : text_(text), scratch_(scratch), event_(event) {}

  Fault run() {
    end = event_end();
    text_ = text_.substr(0, end);
    // Finds the brace that closes the event, or that it is missing; it stands outside of every value.
    size_t last = text_.size();
    while (last > 1 && (is_blank(text_[last - 1]) || text_[last - 1] == ',' || text_[last - 1] == ']')) --last;
    const bool closed = text_[last - 1] == '}';
    const size_t args = find_args();
    size_t args_end = args;
    if (args != kNone) {
      args_end = after_closing_brace(text_.substr(0, last), args);
      if (args_end != kNone) {
        const size_t next = skip_space(text_, args_end);
        const bool sound = next >= last || text_[next] == '}' || (text_[next] == ',' && is_top_key(next + 1));
        if (!sound) args_end = kNone;
      }
      if (args_end == kNone) args_end = closed ? last : kNone;
      if (args_end == kNone) return Fault::kMalformed;  // the text ends inside the arguments
    } else if (!closed) {
      return Fault::kMalformed;
    }
    const size_t head_end = args == kNone ? last : args;
    top_level(1, head_end);
    if (args != kNone) {
      event_.args = text_.substr(args, args_end - args);
      arguments(args + 1, args_end);
      top_level(args_end, last);
    }
    if (event_.phase == '\0') return Fault::kMalformed;
    return fault_;
  }

  size_t end = 0;

 private:
  // Returns the key if one of an event's own keys ("key":) is at text[at] after blanks, else "".
  std::string_view quoted_key(size_t at) const {
    at = skip_space(text_, at);
    if (at >= text_.size() || text_[at] != '"') return {};
    const size_t close = text_.find('"', at + 1);
    if (close == kNone || close - at > 64) return {};
    const size_t colon = skip_space(text_, close + 1);
    if (colon >= text_.size() || text_[colon] != ':') return {};
    return text_.substr(at + 1, close - at - 1);
  }
  bool is_top_key(size_t at) const {
    const std::string_view key = quoted_key(at);
    for (const std::string_view other : {"args", "s", "sf", "cname", "scope", "tts", "tdur"})
      if (key == other) return true;
    return is_field(key);
  }

  // Returns where the event ends: the next one begins at a brace that follows a brace or comma and soon has "ph" after
  // it.
  size_t event_end() const {
    for (size_t open = text_.find('{', 1); open != kNone; open = text_.find('{', open + 1)) {
      size_t before = open;
      while (before > 1 && (is_blank(text_[before - 1]) || text_[before - 1] == ',')) --before;
      if (before == open || !is_top_key(open + 1)) continue;
      const size_t phase = text_.find("\"ph\"", open);
      if (phase == kNone) continue;
      const size_t brace = text_.find_first_of("{}", open + 1);
      if (brace != kNone && brace < phase) continue;
      return before;
    }
    // If the text goes on so far, the event ends before the end of the array: a bracket that follows the event.
    size_t stop = text_.size();
    for (size_t close = text_.find(']'); close != kNone; close = text_.find(']', close + 1)) {
      size_t before = close;
      while (before > 1 && is_blank(text_[before - 1])) --before;
      const size_t after = skip_space(text_, close + 1);
      const bool member = after < text_.size() && text_[after] == ',' && !quoted_key(after + 1).empty() &&
                          text_.substr(before, close - before).find('\n') != kNone;
      const bool over = after >= text_.size() || (text_[after] == '}' && skip_space(text_, after + 1) >= text_.size());
      if (text_[before - 1] == '}' && (member || over)) {
        stop = before;
        break;
      }
    }
    return stop;
  }

  bool after_separator(size_t quote) const {
    size_t before = quote;
    while (before > 0 && is_blank(text_[before - 1])) --before;
    return before > 0 && (text_[before - 1] == ',' || text_[before - 1] == '{' || text_[before - 1] == '}' ||
                          (before < quote && text_[before] == '\n'));
  }

  // Returns the brace of "args": {.
  size_t find_args() const {
    for (size_t at = text_.find("\"args\""); at != kNone; at = text_.find("\"args\"", at + 1)) {
      if (!after_separator(at)) continue;
      size_t open = skip_space(text_, at + 6);
      if (open >= text_.size() || text_[open] != ':') continue;
      open = skip_space(text_, open + 1);
      if (open < text_.size() && text_[open] == '{') return open;
    }
    return kNone;
  }

  // Returns the closing quote of a value within [at, end). It is the first one that is followed by a comma and one of
  // Kineto's keys, or by the end of the region; otherwise the last quote of the line.
  template <class IsKey> size_t value_end(size_t at, size_t end_of_region, IsKey&& is_key) const {
    size_t last = kNone;
    for (size_t quote = text_.find('"', at); quote != kNone && quote < end_of_region;
         quote = text_.find('"', quote + 1)) {
      last = quote;
      const size_t next = skip_space(text_, quote + 1);
      if (next >= end_of_region) return quote;
      if (text_[next] == '}' && skip_space(text_, next + 1) >= end_of_region) return quote;
      if (text_[next] == ',') {
        const size_t after = skip_space(text_, next + 1);
        if (after >= end_of_region || is_key(after)) return quote;
        if (text_[after] == '}' && skip_space(text_, after + 1) >= end_of_region) return quote;
      }
    }
    return last;
  }

  void top_level(size_t at, size_t end_of_region) {
    while (at < end_of_region) {
      at = text_.find('"', at);
      if (at == kNone || at >= end_of_region) return;
      if (!after_separator(at) || !is_top_key(at)) {
        ++at;
        continue;
      }
      const std::string_view key = quoted_key(at);
      at = skip_space(text_, text_.find(':', at + key.size() + 2) + 1);
      if (key == "args" || at >= end_of_region) continue;
      std::string_view value;
      if (text_[at] == '"') {
        const size_t close = value_end(at + 1, end_of_region, [&](size_t next) { return is_top_key(next); });
        if (close == kNone) return;
        value = clean(text_.substr(at + 1, close - at - 1), scratch_);
        at = close + 1;
      } else {
        const size_t close = after_word(text_, at);
        value = time_word(key, text_.substr(at, close - at));
        at = std::max(close, at + 1);
      }
      if (is_field(key) && !set_field(key, value, event_)) fault_ = Fault::kBadField;
    }
  }

  void arguments(size_t at, size_t end_of_region) {
    while (at < end_of_region) {
      at = text_.find('"', at);
      if (at == kNone || at >= end_of_region) return;
      const std::string_view name = quoted_key(at);
      const rows::ArgKey key = after_separator(at) ? rows::arg_key(name) : rows::ArgKey::kNone;
      if (key == rows::ArgKey::kNone) {
        ++at;
        continue;
      }
      at = skip_space(text_, text_.find(':', at + name.size() + 2) + 1);
      if (at >= end_of_region) return;
      if (text_[at] == '"') {
        const size_t close = value_end(at + 1, end_of_region, [&](size_t next) { return !quoted_key(next).empty(); });
        if (close == kNone) return;
        rows::set_arg(key, clean(text_.substr(at + 1, close - at - 1), scratch_), event_);
        at = close + 1;
      } else if (text_[at] != '{' && text_[at] != '[') {
        const size_t close = after_word(text_, at);
        const std::string_view word = text_.substr(at, close - at);
        if (!word.empty()) rows::set_arg(key, word == "null" ? std::string_view() : word, event_);
        at = std::max(close, at + 1);
      } else if (text_[at] == '[' && rows::arg_field(key).array) {
        // The array is of numbers, or of texts without brackets; that is good enough for an event that is broken
        // elsewhere.
        int64_t depth = 0;
        size_t close = at;
        for (; close < end_of_region; ++close) {
          depth += text_[close] == '[';
          depth -= text_[close] == ']';
          if (depth == 0) break;
        }
        if (close < end_of_region) rows::set_arg(key, text_.substr(at, close + 1 - at), event_);
        ++at;
      }
    }
  }

  std::string_view text_;
  std::string& scratch_;
  rows::Event& event_;
  Fault fault_ = Fault::kNone;
};

Fault TolerantParser::parse(std::string_view text, rows::Event& event) {
  text = text.substr(0, kMaxJsonObjectBytes);
  const auto begin = [&] {
    event = rows::Event();
    event.fractional_ts = true;  // holds until a whole ts is seen
    scratch_.clear();
  };
  // Views point into it, so it must not grow while an event is parsed.
  scratch_.reserve(text.size() * 3 + 16);
  guessed_ = false;
  begin();
  Strict strict(text, scratch_, event);
  if (strict.run()) {
    end_ = strict.end;
    return strict.fault;
  }
  guessed_ = true;
  begin();
  end_ = text.size();
  if (text.empty() || text[0] != '{') return Fault::kMalformed;
  Anchored anchored(text, scratch_, event);
  const Fault fault = anchored.run();
  end_ = anchored.end;
  return fault;
}

}  // namespace stageline::kineto
