// Parses the events of one stretch of the traceEvents array.
#pragma once

#include "readers/common/rows/file_rows.h"
#include "readers/kineto/shape_tree.h"

namespace stageline::kineto {

// The fields of an event by name, and the general parser, which takes events in any valid JSON.

enum class Fault : uint8_t {
  kNone,
  kMalformed,  // the text is not JSON
  kBadField,   // a field has the wrong type or is out of range
};

// Returns true for the members of an event, besides args, that are kept.
bool is_field(std::string_view key);

// Sets a field; `text` is the value as written (strings without quotes and escapes, null as ""). False when it should
// be a time and is none.
bool set_field(std::string_view key, std::string_view text, rows::Event& event);

// The general parser uses simdjson. It refuses an event with a kept text that cannot be unescaped; TolerantParser
// (tolerant_event.h) recovers such events as far as possible.
class EventParser {
 public:
  EventParser();
  ~EventParser();
  // `text` is one object, followed by at least 64 readable bytes.
  Fault parse(std::string_view text, rows::Event& event);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Parses one event as Kineto's hand-printed serializer really writes it, where a strict parser gives up. It accepts
// quotes that were not escaped, raw control characters, bytes that are not UTF-8, Windows paths, NaN, too many commas,
// and a missing brace. Kineto printed names and arguments unescaped until 2026 (pytorch 130622, 146900; kineto 1459).
//
// There are two passes. The first keeps JSON's structure and forgives values and commas; for a valid event it gives
// what EventParser gives. When the structure itself is broken, the second pass looks for the names that Kineto writes
// ("pid": after `", `) and takes the text between them.
class TolerantParser {
 public:
  // `text` starts with the event's brace and may go on after the event. end() returns the end of the event. A caller
  // whose counting of braces was misled by a stray quote can go on from there. At most kMaxJsonObjectBytes are looked
  // at. Views are valid until the next call (or as long as `text`). Returns kMalformed when nothing can be trusted,
  // also when the text ends within a value or within the arguments; kBadField when ts or dur is not a time.
  Fault parse(std::string_view text, rows::Event& event);

  size_t end() const { return end_; }
  bool guessed() const { return guessed_; }  // the structure was broken, so names and arguments are the best guess

 private:
  class Strict;
  class Anchored;

  std::string scratch_;
  size_t end_ = 0;
  bool guessed_ = false;
};

// This number of bytes after every stretch of text must be readable, for vector loads and simdjson.
inline constexpr size_t kTextPadding = 64;
inline constexpr size_t kMaxEventBytes = size_t{1} << 22;

class ChunkParser {
 public:
  explicit ChunkParser(const std::string& path) : rows_(path) {}

  enum class Stop : uint8_t {
    kNeedsMore,  // the text ended at the place returned, between events or inside one
    kAtStop,     // `stop` was reached between events
    kClosed,     // the array's ']' was read
    kBlockEnd,   // the last event of a recording was read; a merged file goes on with another one
  };
  struct Place {
    const char* at;
    Stop stop;
  };
  // Parses events from `p`, which is between events of the array, to `end`, or to the first place between events at or
  // after `stop`. `offset` is the decompressed position of `p`. `last` says that no text will follow `end`.
  Place parse(const char* p, const char* end, const char* stop, int64_t offset, bool last);

  rows::RowBuilder& rows() { return rows_; }

 private:
  const char* take_whole(const char* p, const char* end, int64_t offset, bool last);
  size_t take_damaged(std::string_view text, int64_t offset);
  void give_up(int64_t offset);

  ShapeTree shapes_;
  EventParser parser_;
  TolerantParser tolerant_;
  rows::RowBuilder rows_;
  rows::Event event_;
};

// Returns the first place after `p` where an event visibly begins, with a brace and the first key that Chrome traces
// write there; `end` when there is none. This is a guess, for text inside strings can look the same.
const char* next_event(const char* p, const char* end);

}  // namespace stageline::kineto
