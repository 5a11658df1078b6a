#include "readers/paddle_log/scan.h"

#include <simdjson.h>

#include "base/error_words.h"
#include "base/find_anchor.h"
#include "base/input.h"
#include "model/source_limits.h"
#include "readers/paddle_log/problems.h"

namespace stageline {
namespace {

// Both kinds of line contain this text, and the rest distinguishes them, so one search finds both.
constexpr std::string_view kAnchor = "Profiler ";
constexpr size_t kAnchorProbe = 3;  // looks for 'P' with 'f' three bytes further on
constexpr std::string_view kJobRest = "Info: Job (";
constexpr std::string_view kStepBefore = "Schedule ";
constexpr std::string_view kStepRest = "start at step ";

struct Cursor {
  const char* at;
  const char* end;

  bool take(std::string_view literal) {
    if (static_cast<size_t>(end - at) < literal.size() || memcmp(at, literal.data(), literal.size()) != 0) return false;
    at += literal.size();
    return true;
  }
  bool digit() const { return at < end && *at >= '0' && *at <= '9'; }
  std::string_view digits() {
    const char* from = at;
    while (digit()) ++at;
    return {from, static_cast<size_t>(at - from)};
  }
};

bool small_number(std::string_view digits, uint32_t& value) {
  if (digits.empty() || digits.size() > 9) return false;
  value = 0;
  for (const char c : digits) value = value * 10 + (c - '0');
  return true;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// A time as Paddle's regular expression `\d+.\d+` accepts it: digits, any one character but a line end, digits. If that
// character is missing, the expression takes a digit for it, so at least three digits are needed.
struct TimeText {
  std::string_view text;
  bool has_separator = false;
  char separator = 0;  // '.', or the byte in its place; machines that crashed leave NULs too
  size_t decimals = 0;
};

bool take_time(Cursor& c, TimeText& time) {
  const char* const from = c.at;
  const size_t whole = c.digits().size();
  if (whole == 0) return false;
  time.has_separator = false;
  time.decimals = 0;
  if (c.at + 1 < c.end && *c.at != '\n' && *c.at != '\r' && c.at[1] >= '0' && c.at[1] <= '9') {
    time.has_separator = true;
    time.separator = *c.at++;
    time.decimals = c.digits().size();
  } else if (whole < 3) {
    return false;
  }
  time.text = {from, static_cast<size_t>(c.at - from)};
  return true;
}

// Returns false when no clock can have this value.
bool convert_time(const TimeText& time, double& us, int64_t& ns, uint8_t& flags) {
  std::string repaired;
  std::string_view text = time.text;
  if (time.has_separator && time.separator != '.') {
    if (time.separator != ',') {
      flags |= kJobBadNumber;
      us = 0;
      ns = 0;
      return true;
    }
    flags |= kJobDecimalComma;
    repaired = text;
    repaired[text.size() - time.decimals - 1] = '.';
    text = repaired;
  }
  double ms = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (ec != std::errc()) return false;
  us = ms * 1000;
  // The usual form, 13 digits, a point and 6 decimals, is nanoseconds once the point is removed. 18 digits always fit
  // into 64 bits, and 19 do up to the limit.
  if (time.decimals == 6 && text.size() <= 20) {
    uint64_t value = 0;  // up to 19 digits
    for (const char ch : text)
      if (ch != '.') value = value * 10 + (ch - '0');
    ns = std::min(value, uint64_t{INT64_MAX});
  } else {
    const auto exact = parse_decimal_ns(text, 6);
    if (!exact) return false;
    ns = *exact;
  }
  return ns <= kMaxPaddleTimeNs;
}

int type_index(PaddleLog& log, std::string_view type) {
  for (size_t i = 0; i < log.types.size(); ++i)
    if (log.types[i] == type) return static_cast<int>(i);
  if (log.types.size() >= kMaxPaddleTypes) return -1;
  log.types.emplace_back(type);
  return static_cast<int>(log.types.size()) - 1;
}

// Parses what follows "Profiler Info: Job (". Returns false when it is not a complete record.
bool take_job(PaddleLog& log, Cursor& c, int64_t offset, bool at_end) {
  PaddleJob job{};
  if (!small_number(c.digits(), job.id) || !c.take("), type = ")) return false;
  const char* const type_from = c.at;
  while (c.at < c.end && is_word(*c.at)) ++c.at;
  if (c.at == type_from) return false;
  if (c.take("(chunk")) {
    if (c.digits().empty() || !c.take(")")) return false;
    job.flags |= kJobChunkForm;
  }
  const std::string_view type(type_from, c.at - type_from);
  TimeText start, end;
  if (!c.take(", micro_batch_id = ") || !small_number(c.digits(), job.micro_batch)) return false;
  if (!c.take(", job_start_time = ") || !take_time(c, start)) return false;
  if (!c.take(", job_end_time = ") || !take_time(c, end)) return false;
  if (!convert_time(start, job.start_us, job.start_ns, job.flags)) return false;
  if (!convert_time(end, job.end_us, job.end_ns, job.flags)) return false;
  const int index = type_index(log, type);
  if (index < 0) return false;
  job.type = static_cast<uint16_t>(index);
  // Both times have the same number of decimals. A time with fewer was cut: it lost its point, or it is at the very end
  // of the file.
  const bool ends_file = at_end && c.at == c.end;
  if (end.decimals < start.decimals && (!end.has_separator || ends_file)) job.flags |= kJobCut;
  if (!(job.flags & (kJobCut | kJobBadNumber))) {
    if (job.start_ns == 0 && job.end_ns == 0) job.flags |= kJobZero;
    else if (job.end_ns < job.start_ns) job.flags |= kJobNegative;
  }
  if (job.flags != 0) {
    if (job.flags & kJobChunkForm) log.chunk_form.add(offset);
    if (job.flags & kJobZero) log.zero.add(offset);
    if (job.flags & kJobNegative) log.negative.add(offset);
    if (job.flags & kJobCut) log.cut.add(offset);
    if (job.flags & kJobDecimalComma) log.decimal_comma.add(offset);
    if (job.flags & kJobBadNumber) log.bad_number.add(offset);
  }
  log.jobs.push_back(job);
  return true;
}

void take_step_line(PaddleLog& log, Cursor c) {
  uint32_t step = 0;
  if (log.start_step >= 0 || !c.take(kStepRest) || !small_number(c.digits(), step)) return;
  if (c.take(" and end at step")) log.start_step = step;
}

// Counts lines with zeros, as a lost block leaves, in which scan_paddle_text() finds no start of a job. They keep a
// part of a job, or have at least as many zeros as a job has bytes.
void count_lost_starts(PaddleLog& log, std::string_view window, int64_t offset) {
  for (size_t at = window.find('\0'), end = 0; at != std::string_view::npos; at = window.find('\0', end)) {
    const size_t begin = window.rfind('\n', at) + 1;  // 0 in the first line
    end = std::min(window.find('\n', at), window.size());
    const std::string_view line = window.substr(begin, end - begin);
    constexpr std::ptrdiff_t kShortestJob = 64;                          // bytes of a job's line, without a prefix
    const std::string_view before = line.substr(0, line.find(kAnchor));  // all of a line without a start
    const bool is_part =
        before.size() == line.size() && (line.find("micro_batch_id") != line.npos || line.find("job_") != line.npos);
    if (is_part || std::ranges::count(before, '\0') >= kShortestJob)
      log.damaged.add(offset + static_cast<int64_t>(begin));
  }
}

}  // namespace

void scan_paddle_text(PaddleLog& log, std::string_view text, int64_t offset, bool at_end) {
  const char* const end = text.data() + text.size();
  for (size_t from = 0;;) {
    const size_t at = find_anchor(text, from, kAnchor, kAnchorProbe);
    if (at == std::string_view::npos) return;
    from = at + kAnchor.size();
    Cursor c{text.data() + from, end};
    if (c.take(kJobRest))
      if (take_job(log, c, offset + static_cast<int64_t>(at), at_end)) from = c.at - text.data();
      else log.damaged.add(offset + static_cast<int64_t>(at));
    else if (at >= kStepBefore.size() && text.substr(at - kStepBefore.size(), kStepBefore.size()) == kStepBefore)
      take_step_line(log, c);
  }
}

Result<PaddleLog> scan_paddle_log(const std::string& path, Progress* progress) {
  TRY(input, Input::open(path, progress));
  PaddleLog log;
  log.path = path;
  // Windows end at line ends, so only a window without one can be the last; whether it is shows only when the next is
  // read. Keeping it until then would cost a copy, so a window that does not end with a line end is taken as the last.
  const Result<int64_t> bytes = for_each_window(*input, [&](std::string_view window, int64_t offset) {
    if (!simdjson::validate_utf8(window.data(), window.size())) log.bad_utf8.add(offset);
    const bool at_end = window.back() != '\n' && window.back() != '\r';
    scan_paddle_text(log, window, offset, at_end);
    count_lost_starts(log, window, offset);
    log.bytes = offset + std::ssize(window);
  });
  if (!bytes) log.read_error = bytes.error();
  return log;
}

void report_paddle_flaws(const PaddleLog& log, Diagnostics& diagnostics) {
  const auto report = [&](const PaddleFlaw& flaw, const Problem& problem) {
    if (flaw.count == 0) return;
    const Where where{log.path, line_of_offset(log.path, flaw.first_offset), flaw.first_offset};
    diagnostics.add(problem, where, flaw.count);
  };
  report(log.damaged, problem::paddle_damaged_line);
  report(log.cut, problem::paddle_cut_line);
  report(log.bad_number, problem::paddle_bad_number);
  report(log.negative, problem::paddle_negative_job);
  report(log.decimal_comma, problem::paddle_decimal_comma);
  report(log.bad_utf8, problem::paddle_bad_utf8);
  report(log.zero, problem::paddle_zero_job);
  report(log.chunk_form, problem::paddle_chunk_form);
  if (!log.read_error.what.empty())
    diagnostics.add(problem::paddle_unreadable_rest, Args().set("why", error_text(log.read_error)),
                    log.read_error.where);
}

JobType job_type(std::string_view text) {
  JobType type;
  if (text == "optimizer") return {CellKind::kOptimizer, 0, false};
  if (text == "lr" || text == "default") return {CellKind::kOther, 0, false};
  if (text.ends_with("_reduce")) text.remove_suffix(7);
  if (const size_t open = text.find("(chunk"); open != std::string_view::npos) {
    const auto chunk = parse_int(text.substr(open + 6, text.size() - open - 7));
    type.chunk = chunk && *chunk <= kMaxChunkNumber ? static_cast<int32_t>(*chunk) : 0;
    text = text.substr(0, open);
  } else {
    size_t digits = text.size();
    while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9') --digits;
    const auto chunk = parse_int(text.substr(digits));
    if (chunk && *chunk <= kMaxChunkNumber) {
      type.chunk = static_cast<int32_t>(*chunk);
      text = text.substr(0, digits);
    }
  }
  struct Known {
    std::string_view name;
    CellKind kind;
  };
  constexpr Known known[] = {
#include "readers/paddle_log/job_words.def"
  };
  for (const Known& k : known)
    if (text == k.name) {
      type.kind = k.kind;
      return type;
    }
  type.chunk = 0;
  return type;
}

}  // namespace stageline
