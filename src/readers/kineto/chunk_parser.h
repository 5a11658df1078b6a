// Parses the events of one stretch of the traceEvents array.
#pragma once

#include <string>

#include "readers/common/rows/file_rows.h"
#include "readers/kineto/event_parser.h"
#include "readers/kineto/shape_tree.h"

namespace stageline::kineto {

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
