#include "readers/kineto/chunk_parser.h"

#include "readers/common/rows/problems.h"
#include "readers/kineto/problems.h"

namespace stageline::kineto {
namespace {

// Returns the place after the brace that closes the object at p. An object is damaged if it has a line end inside a
// text (a quote is missing or one too many). It is also damaged if it has an object without a key within objects (a
// brace is missing). Then `broken` is set, and the object ends where the next event visibly starts.
const char* after_event(const char* p, const char* end, bool& broken) {
  int depth = 0, arrays = 0;
  char before = '\0';  // the last byte that is not a blank
  bool in_text = false;
  broken = false;
  const char* const limit = end - p > static_cast<std::ptrdiff_t>(kMaxEventBytes) ? p + kMaxEventBytes : end;
  for (const char* q = p; q < limit; ++q) {
    const char c = *q;
    if (in_text) {
      if (c == '"') {
        in_text = false;
      } else if (c == '\\') {
        ++q;
      } else if (c == '\n') {
        broken = true;
        return nullptr;
      }
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (c == '{' && arrays == 0 && before == ',') {
        broken = true;
        return nullptr;
      }
      ++depth;
      arrays += c == '[' ? 1 : 0;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return q + 1;
      arrays -= c == ']' && arrays > 0 ? 1 : 0;
    }
    if (!is_blank(c)) before = c;
  }
  broken = limit < end;  // longer than any event
  return nullptr;
}

}  // namespace

const char* next_event(const char* p, const char* end) {
  while (p < end) {
    const auto* brace = static_cast<const char*>(std::memchr(p, '{', end - p));
    if (!brace) return end;
    const char* q = brace + 1;
    while (q < end && is_blank(*q)) ++q;
    for (const std::string_view key : {"\"ph\"", "\"name\"", "\"cat\"", "\"pid\"", "\"ts\""})
      if (static_cast<size_t>(end - q) > key.size() && std::memcmp(q, key.data(), key.size()) == 0) {
        // The args of metadata begin with "name" too, but they follow a colon, while an event follows a comma, bracket
        // or brace.
        const char* before = brace;
        while (before > p && is_blank(before[-1])) --before;
        if (before == p || before[-1] != ':') return brace;
      }
    p = brace + 1;
  }
  return end;
}

// Takes what simdjson refuses. Returns how much of the text the tolerant parser made an event of; 0 when it could not.
size_t ChunkParser::take_damaged(std::string_view text, int64_t offset) {
  if (tolerant_.parse(text, event_) != Fault::kNone) return 0;
  rows_.lose(problem::kineto_repaired_event, offset);
  rows_.add(event_, offset);
  return tolerant_.end();
}

void ChunkParser::give_up(int64_t offset) {
  rows_.skip_entry();
  rows_.lose(problem::kineto_bad_event, offset);
}

// Parses the event at p with the general parser. Returns its end; nullptr when it is not complete.
const char* ChunkParser::take_whole(const char* p, const char* end, int64_t offset, bool last) {
  bool broken = false;
  const char* close = after_event(p, end, broken);
  if (!close && !broken && !last) return nullptr;
  if (!close) {
    // The braces do not match: there is a stray quote, a brace is missing, or the text has ended.
    const char* const next = next_event(p + 1, end);
    if (next == end && !last && end - p < static_cast<std::ptrdiff_t>(kMaxEventBytes)) return nullptr;
    if (const size_t taken = take_damaged({p, static_cast<size_t>(next - p)}, offset)) return p + taken;
    give_up(offset);
    return next;
  }
  const std::string_view text(p, static_cast<size_t>(close - p));
  const Fault fault = parser_.parse(text, event_);
  if (fault == Fault::kNone) {
    rows_.add(event_, offset);
    shapes_.learn(text);
    return close;
  }
  // Where a missing brace has glued whole events together, they are separated where one visibly begins.
  const char* next = next_event(p + 1, close);
  if (next < close) {
    const std::string_view piece(p, next - p);
    if (const size_t taken = take_damaged(piece, offset)) return p + taken;
    give_up(offset);
    return next;
  }
  if (const size_t taken = take_damaged(text, offset)) return p + taken;
  if (fault != Fault::kBadField) {
    give_up(offset);
  } else {
    rows_.skip_entry();
    rows_.lose(problem::kineto_bad_time, offset);
  }
  return close;
}

ChunkParser::Place ChunkParser::parse(const char* p, const char* const end, const char* const stop, int64_t offset,
                                      bool last) {
  const char* const begin = p;
  for (;;) {
    while (p < end && (is_blank(*p) || *p == ',')) ++p;
    if (p >= end) return {end, Stop::kNeedsMore};
    if (*p == '{') {
      if (p >= stop) return {p, Stop::kAtStop};
      const char* after = shapes_.match(p, end, event_);
      if (after) {
        rows_.add(event_, offset + (p - begin));
      } else {
        after = take_whole(p, end, offset + (p - begin), last);
        if (!after) return {p, Stop::kNeedsMore};
      }
      p = after;
      if (rows_.block_ended()) return {p, Stop::kBlockEnd};
      continue;
    }
    if (*p == ']') return {p + 1, Stop::kClosed};
    // This is not an event: a lone value, a log line, or a brace too many.
    rows_.lose(problem::kineto_damaged_text, offset + (p - begin));
    ++p;
    while (p < end && *p != '{' && *p != ']' && *p != '\n') ++p;
  }
}

}  // namespace stageline::kineto
