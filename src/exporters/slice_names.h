// Names of slices in trace viewers: "F3 (8.05 ms)", "B1.c1 (16.20 ms)", "optimizer (4.10 ms)".
//
// The duration is in the name because Paddle's manual shows and promises it there, so people look for it there.
//
// Perfetto colours a slice by a hash of its name without the numbers, and offers no other choice. Therefore every name
// of one kind has the same text around its numbers: always two decimals, and one unit for each kind (the unit of its
// median duration). Perfetto sees both "F3 (8.05 ms)" and "F12 (121.40 ms)" as "F (. ms)"; "999 us" and "1.00 ms" would
// have two colours. Units are ASCII ("us"), as in both viewers' own texts and search boxes.
#pragma once

#include "model/trace.h"

namespace stageline {

enum class NameUnit : uint8_t { kMicro, kMilli, kSecond };

class SliceNames {
 public:
  SliceNames(const Trace& trace, bool with_chunk);

  // Returns true when the cell is named after its source slice ("params-all-gather") and not by its label ("F3"). That
  // is every cell that is neither compute nor a message of a known micro-batch.
  bool has_own_name(size_t cell) const;
  // Appends the name without the duration: "F3", "F3.c1", "optimizer". It is valid UTF-8.
  void append_stem(std::string& out, size_t cell) const;
  // Appends " (8.05 ms)". A duration that would read 0.00 is shown in a smaller unit.
  void append_duration(std::string& out, size_t cell) const;
  void append(std::string& out, size_t cell) const {
    append_stem(out, cell);
    append_duration(out, cell);
  }

  // Returns the shown number in its unit. Cells of one kind of stem have equal codes exactly when their names are
  // equal.
  uint64_t duration_code(size_t cell) const;

 private:
  const Trace& trace_;
  bool with_chunk_;
  ByEnum<CellKind, NameUnit, kCellKindCount> unit_;
};

void append_number(std::string& out, uint64_t value);

// Returns "step 3 (2.21 s)".
std::string step_name(int32_t step, int64_t dur_ns);

// Returns a cell's end, but never a time before its start: viewers drop slices with negative durations.
inline int64_t shown_end_ns(const Cells& cells, size_t i) {
  return cells.end_ns[i] < cells.start_ns[i] ? cells.start_ns[i] : cells.end_ns[i];
}

}  // namespace stageline
