// The fast scan of worker logs against the regular expression of Paddle's own script, spelled out
// slowly, and against itself on the same text cut at line ends.
#include <optional>

#include "fuzz.h"
#include "readers/paddle_log/scan.h"

namespace stageline::fuzz {
namespace {

// .*?Profiler Info: Job \((\d+)\), type = (\w+), micro_batch_id = (\d+),
//    job_start_time = (\d+.\d+), job_end_time = (\d+.\d+)
// on bytes: \w takes every byte of a multi-byte letter, `.` any one byte but a line end.
struct Match {
  std::string_view id, type, micro_batch, start, end;
  size_t after = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}
bool is_line_end(char c) { return c == '\n' || c == '\r'; }

struct Reference {
  std::string_view text;

  bool literal(size_t& at, std::string_view what) const {
    if (text.substr(at, what.size()) != what) return false;
    at += what.size();
    return true;
  }
  template <class Is> std::string_view run(size_t& at, Is is) const {
    const size_t from = at;
    while (at < text.size() && is(text[at])) ++at;
    return text.substr(from, at - from);
  }
  // \d+.\d+ with backtracking: the ends it can have, in the order the expression tries them.
  std::vector<size_t> time_ends(size_t at) const {
    std::vector<size_t> ends;
    size_t most = at;
    while (most < text.size() && is_digit(text[most])) ++most;
    for (size_t whole = most; whole > at; --whole) {
      if (whole >= text.size() || is_line_end(text[whole])) continue;
      size_t stop = whole + 1;
      while (stop < text.size() && is_digit(text[stop])) ++stop;
      for (size_t end = stop; end > whole + 1; --end) ends.push_back(end);
      if (ends.size() > 64) break;  // what follows cannot fit where 64 longer ones did not
    }
    return ends;
  }
  std::optional<Match> at(size_t at) const {
    Match m;
    if (!literal(at, "Profiler Info: Job (")) return {};
    m.id = run(at, is_digit);
    if (m.id.empty() || !literal(at, "), type = ")) return {};
    m.type = run(at, is_word);
    if (m.type.empty() || !literal(at, ", micro_batch_id = ")) return {};
    m.micro_batch = run(at, is_digit);
    if (m.micro_batch.empty() || !literal(at, ", job_start_time = ")) return {};
    for (const size_t end : time_ends(at)) {
      size_t next = end;
      if (!literal(next, ", job_end_time = ")) continue;
      const std::vector<size_t> ends = time_ends(next);
      if (ends.empty()) return {};
      m.start = text.substr(at, end - at);
      m.end = text.substr(next, ends[0] - next);
      m.after = ends[0];
      return m;
    }
    return {};
  }
};

// Milliseconds in decimal text as nanoseconds, half to even; nullopt past ±4·10^18 ns or when the
// text is not a number to Python's float() (a decimal comma is repaired).
std::optional<int64_t> exact_ns(std::string_view text) {
  size_t whole = 0;
  while (whole < text.size() && is_digit(text[whole])) ++whole;
  std::string digits(text.substr(0, whole)), decimals;
  if (whole < text.size()) decimals = text.substr(whole + 1);
  const std::string rest = decimals.size() > 6 ? decimals.substr(6) : "";
  decimals.resize(6, '0');
  digits += decimals;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.size() > 19) return {};
  unsigned __int128 value = 0;
  for (const char c : digits) value = value * 10 + static_cast<unsigned>(c - '0');
  const std::string half = "5" + std::string(rest.empty() ? 0 : rest.size() - 1, '0');
  if (!rest.empty() && (rest > half || (rest == half && value % 2 == 1))) ++value;
  if (value > 4'000'000'000'000'000'000) return {};
  return static_cast<int64_t>(value);
}

bool same(const PaddleFlaw& a, const PaddleFlaw& b) { return a.count == b.count && a.first_offset == b.first_offset; }

bool same(const PaddleLog& a, const PaddleLog& b) {
  if (a.jobs.size() != b.jobs.size() || a.types != b.types || a.start_step != b.start_step) return false;
  for (size_t i = 0; i < a.jobs.size(); ++i) {
    const PaddleJob &x = a.jobs[i], &y = b.jobs[i];
    if (x.start_us != y.start_us || x.end_us != y.end_us || x.start_ns != y.start_ns || x.end_ns != y.end_ns ||
        x.id != y.id || x.micro_batch != y.micro_batch || x.type != y.type || x.flags != y.flags)
      return false;
  }
  return same(a.damaged, b.damaged) && same(a.zero, b.zero) && same(a.negative, b.negative) && same(a.cut, b.cut) &&
         same(a.decimal_comma, b.decimal_comma) && same(a.bad_number, b.bad_number) && same(a.chunk_form, b.chunk_form);
}

void check_time(std::string_view text, const PaddleJob& job, double us, int64_t ns) {
  size_t whole = 0;
  while (whole < text.size() && is_digit(text[whole])) ++whole;
  const bool has_separator = whole < text.size();
  const bool is_number = !has_separator || text[whole] == '.' || text[whole] == ',';
  if (!is_number) {
    FUZZ_CHECK(job.flags & kJobBadNumber, std::string(text));
    return;
  }
  std::string repaired(text);
  if (has_separator) repaired[whole] = '.';
  FUZZ_CHECK(us == strtod(repaired.c_str(), nullptr) * 1000, repaired);
  FUZZ_CHECK(ns == exact_ns(text), repaired);
}

void check_against_expression(std::string_view text, const PaddleLog& log) {
  const Reference reference{text};
  size_t next = 0;
  const auto skip_chunk_form = [&] {  // the expression cannot see "forward(chunk0)"
    while (next < log.jobs.size() && (log.jobs[next].flags & kJobChunkForm)) ++next;
  };
  for (size_t at = 0; at < text.size();) {
    at = text.find("Profiler Info: Job (", at);
    if (at == std::string_view::npos) break;
    const std::optional<Match> m = reference.at(at);
    if (!m) {
      ++at;
      continue;
    }
    at = m->after;
    // Beyond the documented limits: numbers of ten digits and times no clock shows.
    const auto is_time = [](std::string_view t) { return exact_ns(t).has_value(); };
    const auto odd = [](std::string_view t) {  // neither point nor comma: flagged before it is converted
      const size_t stop = t.find_first_not_of("0123456789");
      return stop != std::string_view::npos && t[stop] != '.' && t[stop] != ',';
    };
    if (m->id.size() > 9 || m->micro_batch.size() > 9) continue;
    if ((!odd(m->start) && !is_time(m->start)) || (!odd(m->end) && !is_time(m->end))) continue;
    skip_chunk_form();
    FUZZ_CHECK(next < log.jobs.size(),
               "not found: " + std::string(text.substr(at - (at - (m->id.data() - text.data())), 200)));
    const PaddleJob& job = log.jobs[next++];
    FUZZ_CHECK(std::to_string(job.id) == std::to_string(atoll(std::string(m->id).c_str())), std::string(m->id));
    FUZZ_CHECK(job.micro_batch == static_cast<uint32_t>(atoll(std::string(m->micro_batch).c_str())),
               std::string(m->id));
    FUZZ_CHECK(log.types[job.type] == m->type, std::string(m->type));
    check_time(m->start, job, job.start_us, job.start_ns);
    check_time(m->end, job, job.end_us, job.end_ns);
  }
  skip_chunk_form();
  FUZZ_CHECK(next == log.jobs.size(), "a job that the expression does not see");
}

}  // namespace
}  // namespace stageline::fuzz

FUZZ_TARGET(paddle_scan) {
  using namespace stageline;
  using namespace stageline::fuzz;
  Bytes input{data, size};
  const uint8_t salt = input.byte();
  // A copy of its own size, so that reading past the end is seen.
  const std::vector<char> copy(input.rest().begin(), input.rest().end());
  const std::string_view text(copy.data(), copy.size());
  PaddleLog whole;
  scan_paddle_text(whole, text, 0, true);
  check_against_expression(text, whole);

  PaddleLog pieces;
  size_t from = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool last = i + 1 == text.size();
    if (!last && (!is_line_end(text[i]) || ((i * 31 + salt) & 3) == 0)) continue;
    const std::vector<char> piece(text.begin() + static_cast<std::ptrdiff_t>(from),
                                  text.begin() + static_cast<std::ptrdiff_t>(i + 1));
    scan_paddle_text(pieces, {piece.data(), piece.size()}, static_cast<int64_t>(from), last);
    from = i + 1;
  }
  FUZZ_CHECK(same(whole, pieces), "cut at line ends the text reads otherwise");
  return 0;
}
