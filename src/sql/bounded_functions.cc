// The cost of these functions in SQLite is the product of two lengths, or a number in a format. Here a search is
// linear; where it cannot be, longer texts are an error.
#include <string.h>

#include "sql/functions.h"
#include "sql/table_source.h"

namespace stageline::sql {
namespace {

constexpr int kMaxPadding = 10'000;           // width and precision in a format
constexpr size_t kMaxCompared = 200'000'000;  // maximum number of pairs of bytes that one call compares

bool any_null(int count, sqlite3_value** values) {
  return std::any_of(values, values + count, [](sqlite3_value* v) { return sqlite3_value_type(v) == SQLITE_NULL; });
}

// instr(text, part) counts letters before the first occurrence, plus one; of two blobs, bytes.
void instr(sqlite3_context* context, int count, sqlite3_value** values) {
  if (any_null(count, values)) return sqlite3_result_null(context);
  const bool blobs = sqlite3_value_type(values[0]) == SQLITE_BLOB && sqlite3_value_type(values[1]) == SQLITE_BLOB;
  const std::string_view text = text_of(values[0]), part = text_of(values[1]);
  if (part.empty()) return sqlite3_result_int(context, 1);
  const auto* const at = static_cast<const char*>(memmem(text.data(), text.size(), part.data(), part.size()));
  if (!at) return sqlite3_result_int(context, 0);
  const auto inside = blobs ? 0 : std::count_if(text.data(), at, continues_character);
  sqlite3_result_int64(context, at - text.data() - inside + 1);
}

void replace(sqlite3_context* context, int count, sqlite3_value** values) {
  if (any_null(count, values)) return sqlite3_result_null(context);
  const std::string_view part = text_of(values[1]), by = text_of(values[2]);
  std::string_view rest = text_of(values[0]);
  if (part.empty()) return sqlite3_result_value(context, values[0]);
  const auto max = static_cast<size_t>(sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1));
  sqlite3_str* const out = sqlite3_str_new(sqlite3_context_db_handle(context));
  while (const auto* const at = static_cast<const char*>(memmem(rest.data(), rest.size(), part.data(), part.size()))) {
    sqlite3_str_append(out, rest.data(), static_cast<int>(at - rest.data()));
    sqlite3_str_append(out, by.data(), static_cast<int>(by.size()));
    rest.remove_prefix(static_cast<size_t>(at - rest.data()) + part.size());
    if (static_cast<size_t>(sqlite3_str_length(out)) + rest.size() > max || sqlite3_str_errcode(out) != SQLITE_OK)
      break;
  }
  sqlite3_str_append(out, rest.data(), static_cast<int>(rest.size()));
  if (static_cast<size_t>(sqlite3_str_length(out)) > max || sqlite3_str_errcode(out) == SQLITE_TOOBIG)
    sqlite3_result_error_toobig(context);
  else if (sqlite3_str_errcode(out) != SQLITE_OK) sqlite3_result_error_nomem(context);
  else sqlite3_result_text64(context, sqlite3_str_value(out), sqlite3_str_length(out), SQLITE_TRANSIENT, SQLITE_UTF8);
  sqlite3_free(sqlite3_str_finish(out));
}

// trim(text), trim(text, letters); the user data says which ends: 1 the left, 2 the right one.
void trim_ends(sqlite3_context* context, int count, sqlite3_value** values) {
  if (any_null(count, values)) return sqlite3_result_null(context);
  std::string_view text = text_of(values[0]);
  const std::string_view set = count > 1 ? text_of(values[1]) : " ";
  if (is_too_much(context, text.size(), set.size())) return;
  std::vector<std::string_view> letters;
  for (size_t i = 0, end = 0; i < set.size(); i = end) {
    for (end = i + 1; end < set.size() && continues_character(set[end]);) ++end;
    letters.push_back(set.substr(i, end - i));
  }
  const auto ends = reinterpret_cast<intptr_t>(sqlite3_user_data(context));
  const auto cut = [&](auto has, auto remove) {
    for (auto at = letters.begin(); at != letters.end();) {
      at = std::ranges::find_if(letters, [&](std::string_view letter) { return has(letter); });
      if (at != letters.end()) remove(at->size());
    }
  };
  if (ends & 1)
    cut([&](std::string_view letter) { return text.starts_with(letter); }, [&](size_t n) { text.remove_prefix(n); });
  if (ends & 2)
    cut([&](std::string_view letter) { return text.ends_with(letter); }, [&](size_t n) { text.remove_suffix(n); });
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

// like(pattern, text), like(pattern, text, escape) and glob(pattern, text): "text LIKE pattern" is written so.
void like(sqlite3_context* context, int count, sqlite3_value** values) {
  if (any_null(count, values)) return sqlite3_result_null(context);
  const std::string_view pattern = text_of(values[0]), text = text_of(values[1]);
  const int max = sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1);
  if (pattern.size() > static_cast<size_t>(max))
    return sqlite3_result_error(context, "LIKE or GLOB pattern too complex", -1);
  if (is_too_much(context, text.size(), pattern.size())) return;
  const char* const p = pattern.data() ? pattern.data() : "";
  const char* const t = text.data() ? text.data() : "";
  if (sqlite3_user_data(context)) return sqlite3_result_int(context, sqlite3_strglob(p, t) == 0);
  unsigned escape = 0;
  if (count > 2) {
    const std::string_view letter = text_of(values[2]);
    for (const char c : letter)
      escape = continues_character(c) ? escape << 6 | (c & 0x3f) : static_cast<unsigned char>(c);
    if (letter.size() > 1)  // the bits of the first byte that say how many follow
      escape &= letter.size() == 2 ? 0x7ff : letter.size() == 3 ? 0xffff : 0x1fffff;
    if (letter.empty() || std::ranges::count_if(letter, continues_character) + 1 != std::ssize(letter))
      return sqlite3_result_error(context, "ESCAPE expression must be a single character", -1);
  }
  sqlite3_result_int(context, sqlite3_strlike(p, t, escape) == 0);
}

// One directive of a format, as SQLite's own is to see it: with numbers for *, and without its kind.
struct Directive {
  std::string text = "%";
  int64_t precision = -1;
  char kind = '\0';  // its letter; none where the format ends before it
  bool is_too_wide = false;
};

// Reads the directive behind a percent sign at `at`, which becomes the place behind it.
template <class Next> Directive read_directive(const std::string& format, size_t& at, const Next& argument) {
  Directive read;
  int64_t number = 0;
  for (bool after_dot = false; at < format.size() && strchr("-+ #0!,.*l123456789", format[at]); ++at) {
    const char c = format[at];
    if (c == 'l') continue;
    if (c == '.') after_dot = true;
    if (c == '.') number = read.precision = 0;
    if (c == '*') {
      sqlite3_value* const value = argument();
      number = std::clamp<int64_t>(value ? sqlite3_value_int64(value) : 0, -kMaxPadding - 1, kMaxPadding + 1);
      read.text += std::to_string(after_dot ? std::max<int64_t>(number, -number) : number);
    } else {
      read.text += c;
      number = c >= '0' && c <= '9' ? std::min<int64_t>(number * 10 + (c - '0'), kMaxPadding + 1) : number;
    }
    if (after_dot) read.precision = std::abs(number);
    read.is_too_wide |= std::abs(number) > kMaxPadding;
  }
  if (at < format.size()) read.kind = format[at++];
  return read;
}

void append_character(sqlite3_str* out, std::string_view text, int64_t count) {
  size_t end = text.empty() ? 0 : 1;
  while (end < text.size() && continues_character(text[end])) ++end;
  for (int64_t i = std::max<int64_t>(1, count); i > 0; --i) sqlite3_str_append(out, text.data(), static_cast<int>(end));
}

// Returns false for a directive that SQLite does not know: it ends there.
template <class Next> bool append_directive(sqlite3_str* out, const Directive& directive, const Next& argument) {
  const char kind = directive.kind;
  if (kind == '%') return sqlite3_str_appendchar(out, 1, '%'), true;
  if (!strchr("diuxXopfeEgGszqQwc", kind)) return false;
  sqlite3_value* const value = argument();
  if (strchr("diuxXop", kind)) {
    sqlite3_str_appendf(out, (directive.text + "ll" + kind).c_str(), value ? sqlite3_value_int64(value) : 0LL);
  } else if (strchr("feEgG", kind)) {
    sqlite3_str_appendf(out, (directive.text + kind).c_str(), value ? sqlite3_value_double(value) : 0.0);
  } else if (kind == 'c') {
    append_character(out, value ? text_of(value) : "", directive.precision);
  } else {
    const auto* const text = value ? reinterpret_cast<const char*>(sqlite3_value_text(value)) : nullptr;
    sqlite3_str_appendf(out, (directive.text + (kind == 'z' ? 's' : kind)).c_str(),
                        text          ? text
                        : kind == 'Q' ? text
                                      : "");
  }
  return true;
}

// printf(format, …): one directive after the other by SQLite's own, with numbers for * put in.
void print(sqlite3_context* context, int count, sqlite3_value** values) {
  if (count == 0 || sqlite3_value_type(values[0]) == SQLITE_NULL) return sqlite3_result_null(context);
  const std::string format(text_of(values[0]));
  int next = 1;
  const auto argument = [&] { return next < count ? values[next++] : nullptr; };
  sqlite3_str* const out = sqlite3_str_new(sqlite3_context_db_handle(context));
  bool is_refused = false;
  for (size_t at = 0; at < format.size() && sqlite3_str_errcode(out) == SQLITE_OK;) {
    const size_t percent = std::min(format.find('%', at), format.size());
    sqlite3_str_append(out, format.data() + at, static_cast<int>(percent - at));
    if (percent == format.size()) break;
    at = percent + 1;
    const Directive directive = read_directive(format, at, argument);
    is_refused = directive.is_too_wide;
    if (is_refused || directive.kind == '\0' || !append_directive(out, directive, argument)) break;
  }
  if (is_refused) sqlite3_result_error(context, "a width or precision in a format is at most 10000", -1);
  else if (sqlite3_str_errcode(out) == SQLITE_TOOBIG) sqlite3_result_error_toobig(context);
  else if (sqlite3_str_errcode(out) != SQLITE_OK) sqlite3_result_error_nomem(context);
  else
    sqlite3_result_text64(context, sqlite3_str_length(out) > 0 ? sqlite3_str_value(out) : "", sqlite3_str_length(out),
                          SQLITE_TRANSIENT, SQLITE_UTF8);
  sqlite3_free(sqlite3_str_finish(out));
}

}  // namespace

bool is_too_much(sqlite3_context* context, size_t a, size_t b) {
  if (a == 0 || b <= kMaxCompared / a) return false;
  sqlite3_result_error(context, "a text of this query is too long to be searched so", -1);
  return true;
}

int add_bounded_functions(sqlite3* db) {
  constexpr int kPure = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  struct Function {
    const char* name;
    int arguments;
    intptr_t data;
    void (*call)(sqlite3_context*, int, sqlite3_value**);
  };
  static constexpr Function kFunctions[] = {
#include "sql/bounded_functions.def"
  };
  int code = SQLITE_OK;
  for (const Function& f : kFunctions)
    if (code == SQLITE_OK)
      code = sqlite3_create_function_v2(db, f.name, f.arguments, kPure, reinterpret_cast<void*>(f.data), f.call,
                                        nullptr, nullptr, nullptr);
  return code;
}

}  // namespace stageline::sql
