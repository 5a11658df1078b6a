// Tests the small text functions of the base, each against a slow reference or a law. Input: byte 0 chooses the
// function.
#include <simdjson.h>

#include <cmath>
#include <optional>

#include "base/csv.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "base/text.h"
#include "engine/engine.h"
#include "fuzz.h"
#include "model/cells.h"

namespace stageline::fuzz {
namespace {

// parse_decimal_ns digit by digit on strings: no arithmetic that could overflow.
std::optional<int64_t> slow_decimal_ns(std::string_view text, int unit) {
  size_t i = 0;
  const auto run = [&] {
    const size_t from = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return std::string(text.substr(from, i - from));
  };
  bool negative = false;
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) negative = text[i++] == '-';
  const std::string whole = run();
  std::string decimals;
  if (i < text.size() && text[i] == '.') {
    ++i;
    decimals = run();
  }
  if (whole.empty() && decimals.empty()) return {};
  int64_t exponent = 0;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    bool down = false;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) down = text[i++] == '-';
    std::string digits = run();
    if (digits.empty()) return {};
    digits.erase(0, digits.find_first_not_of('0'));
    if (digits.size() > 3 || (!digits.empty() && atoi(digits.c_str()) > 400)) return {};  // a documented limit
    exponent = digits.empty() ? 0 : atoi(digits.c_str());
    if (down) exponent = -exponent;
  }
  if (i != text.size()) return {};
  const std::string digits = whole + decimals;
  const int64_t point = static_cast<int64_t>(whole.size()) + exponent + unit;
  std::string integer, rest;
  if (point <= 0) {
    rest = std::string(static_cast<size_t>(-point), '0') + digits;
  } else {
    const auto p = static_cast<size_t>(point);
    integer = digits.substr(0, p);
    if (integer.size() < p) integer.append(p - integer.size(), '0');
    if (digits.size() > p) rest = digits.substr(p);
  }
  integer.erase(0, std::min(integer.find_first_not_of('0'), integer.size()));
  if (integer.size() > 19) return {};
  unsigned __int128 value = 0;
  for (const char c : integer) value = value * 10 + static_cast<unsigned>(c - '0');
  if (!rest.empty()) {
    const std::string half = "5" + std::string(rest.size() - 1, '0');
    if (rest > half || (rest == half && value % 2 == 1)) ++value;
  }
  if (value > static_cast<unsigned __int128>(INT64_MAX)) return {};
  return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

void decimals(Bytes input) {
  constexpr int kUnits[] = {0, 3, 6, 9};
  const int unit = kUnits[input.byte() % 4];
  const std::string text(input.rest());
  FUZZ_CHECK(parse_decimal_ns(text, unit) == slow_decimal_ns(text, unit), text);
}

void doubles(Bytes input) {
  double value;
  const int64_t bits = input.number();
  memcpy(&value, &bits, sizeof value);
  if (!std::isnan(value)) {
    FUZZ_CHECK(strtod(repr_double(value).c_str(), nullptr) == value, repr_double(value));
    if (std::isfinite(value)) FUZZ_CHECK(parse_double(json_double(value)) == value, json_double(value));
  }
  human_duration(value);
  human_bytes(value);
  percent(value);
  fixed(value, input.byte() % 10);
  for (const int unit : {0, 3, 6, 9}) {
    const std::string text = ns_as_decimal(bits, unit);
    if (bits != INT64_MIN) FUZZ_CHECK(parse_decimal_ns(text, unit) == bits, text);
  }
  std::string plain = grouped(bits);
  for (size_t at; (at = plain.find("\u202f")) != std::string::npos;) plain.erase(at, strlen("\u202f"));
  FUZZ_CHECK(plain == std::to_string(bits), plain);
  const std::string text(input.rest());
  const size_t sign = text.starts_with('+') || text.starts_with('-');
  const bool digits = text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string::npos;
  const auto integer = parse_int(text);
  FUZZ_CHECK(!integer || (digits && *integer == atoll(text.c_str())), text);
  FUZZ_CHECK(integer || !digits || text.size() > 18, text);
  const auto real = parse_double(text);
  FUZZ_CHECK(!real || (text.find_first_not_of("+-.0123456789eE") == std::string::npos &&
                       *real == strtod(text.c_str(), nullptr)),
             text);
}

void csv(Bytes input) {
  const std::string_view text = input.rest();
  // Any text ends, and consumes itself.
  std::string_view rest = text;
  std::vector<std::string_view> fields;
  std::vector<std::string> storage;
  int64_t lines = 0, records = 0;
  while (next_csv_record(rest, fields, storage, &lines)) {
    FUZZ_CHECK(!fields.empty() && ++records <= static_cast<int64_t>(text.size()), "a record without bytes");
    FUZZ_CHECK(rest.data() + rest.size() == text.data() + text.size(), "rest");
    size_t bytes = 0;
    for (const std::string_view field : fields) bytes += field.size();
    FUZZ_CHECK(bytes <= text.size(), "fields");
  }
  FUZZ_CHECK(rest.empty(), "rest");
  // Written text can be read back.
  std::string written;
  const std::vector<NamedText> cells = split_texts(text);
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) written += ',';
    append_csv_field(written, cells[i].text);
  }
  const std::string ends[] = {"", "\n", "\r\n"};
  written += ends[text.size() % 3];
  rest = written;
  const bool any = next_csv_record(rest, fields, storage, &lines);
  FUZZ_CHECK(any == !written.empty(), written);
  if (!any) return;
  FUZZ_CHECK(rest.empty() && fields.size() == cells.size(), written);
  for (size_t i = 0; i < cells.size(); ++i) FUZZ_CHECK(fields[i] == cells[i].text, written);
}

void utf8(Bytes input) {
  const std::string_view text = input.rest();
  const std::string valid = valid_utf8(text);
  FUZZ_CHECK(simdjson::validate_utf8(valid), "still invalid");
  FUZZ_CHECK(valid_utf8(valid) == valid, "not idempotent");
  if (simdjson::validate_utf8(text.data(), text.size())) FUZZ_CHECK(valid == text, "valid text was changed");
  FUZZ_CHECK(display_width(text) >= 0 && display_width(text) <= 2 * static_cast<int>(text.size()), "width");
  for (const bool ascii : {false, true}) {
    std::string json;
    append_json_string(json, text, ascii);
    FUZZ_CHECK(json.find("</") == std::string::npos, json);
    if (ascii)
      for (const char c : json) FUZZ_CHECK(c >= 0x20 && c < 0x7f, json);
    simdjson::dom::parser parser;
    std::string_view back;
    FUZZ_CHECK(!parser.parse(json).get(back) && back == valid, json);
  }
}

void order(Bytes input) {
  std::vector<std::string_view> words;
  for (const NamedText& text : split_texts(input.rest())) words.push_back(text.text);
  if (words.size() > 6) words.resize(6);
  for (const auto a : words) {
    FUZZ_CHECK(!natural_less(a, a), std::string(a));
    for (const auto b : words) {
      const bool ab = natural_less(a, b), ba = natural_less(b, a);
      FUZZ_CHECK(!(ab && ba), std::string(a) + " | " + std::string(b));
      FUZZ_CHECK(ab || ba || a == b, std::string(a) + " | " + std::string(b));
      for (const auto c : words)
        FUZZ_CHECK(!(ab && natural_less(b, c)) || natural_less(a, c),
                   std::string(a) + " | " + std::string(b) + " | " + std::string(c));
    }
  }
  if (words[0].size() < 256)
    nearest(words[0], {"report", "export", "analyze", std::string(words.back().substr(0, 256))});
  file_extension(words[0]);
  trim(words[0]);
  split(words[0], ',');
  dashed(words[0]);
}

void row_counts(Bytes input) {
  std::vector<int64_t> start, end;
  int64_t at = -1000;
  while (input.size > 0 && start.size() < 1000) {
    at += input.byte() / 4;
    start.push_back(at);
    end.push_back(at + input.byte());
  }
  std::vector<int> row;
  const int count = assign_rows(start, end, row);
  size_t deepest = 0;
  for (size_t i = 0; i < start.size(); ++i) {
    size_t open = 0;
    for (size_t k = 0; k < i; ++k) {
      open += end[k] > start[i];
      if (row[k] == row[i] && count < 64) FUZZ_CHECK(end[k] <= start[i], "two of one row overlap");
    }
    deepest = std::max(deepest, open + 1);
    FUZZ_CHECK(row[i] >= 0 && row[i] < count, "row");
  }
  FUZZ_CHECK(static_cast<size_t>(count) == std::min<size_t>(deepest, 64), "more rows than needed");
}

void options(Bytes input) {
  const std::string_view text = input.rest();
  if (const auto list = parse_number_list(text)) {
    FUZZ_CHECK(list->size() <= 1'000'000 && std::is_sorted(list->begin(), list->end()), std::string(text));
    FUZZ_CHECK(std::adjacent_find(list->begin(), list->end()) == list->end(), std::string(text));
    FUZZ_CHECK(!list->empty() && list->front() >= 0, std::string(text));
  }
  if (const auto ns = parse_duration(text))
    FUZZ_CHECK(parse_duration(std::to_string(*ns) + "ns") == ns, std::string(text));
  if (const auto range = parse_time_range(text)) FUZZ_CHECK(range->from_ns <= range->to_ns, std::string(text));
  int64_t first = 0, last = 0;
  if (parse_step_range(text, first, last)) FUZZ_CHECK(first <= last, std::string(text));
}

}  // namespace
}  // namespace stageline::fuzz

FUZZ_TARGET(text) {
  using namespace stageline::fuzz;
  Bytes input{data, size};
  constexpr void (*kChecks[])(Bytes) = {decimals, doubles, csv, utf8, order, row_counts, options};
  const uint8_t choice = input.byte();
  kChecks[choice % std::size(kChecks)](input);
  return 0;
}
