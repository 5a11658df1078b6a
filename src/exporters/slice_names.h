// Names of slices in trace viewers: "F3 (8.05 ms)", "B1.c1 (16.20 ms)", "optimizer (4.10 ms)".
//
// Duration in the name: Paddle's manual shows and promises it, so people look for it there.
//
// Perfetto colours a slice by a hash of its name with the numbers taken out, and does not let us
// choose. Therefore every name of one kind has the same text around its numbers: always two
// decimals, and one unit per kind (that of its median duration). "F3 (8.05 ms)" and
// "F12 (121.40 ms)" are both "F (. ms)" to it; "999 us" and "1.00 ms" would be two colours.
// Units are ASCII ("us"), as in both viewers' own texts and search boxes.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/trace.h"

namespace stageline {

enum class NameUnit : uint8_t { kMicro, kMilli, kSecond };

class SliceNames {
 public:
  SliceNames(const Trace& trace, bool with_chunk);

  // True when the cell goes by the name of its source slice ("params-all-gather") rather than by
  // its label ("F3"): everything that is neither compute nor a message of a known micro-batch.
  bool has_own_name(size_t cell) const;
  // The name without the duration: "F3", "F3.c1", "optimizer". Valid UTF-8.
  void append_stem(std::string& out, size_t cell) const;
  // " (8.05 ms)". A duration that would read 0.00 is shown in a smaller unit.
  void append_duration(std::string& out, size_t cell) const;
  void append(std::string& out, size_t cell) const {
    append_stem(out, cell);
    append_duration(out, cell);
  }

  // Equal exactly for cells of equal name within one kind of stem: the number shown, in its unit.
  uint64_t duration_code(size_t cell) const;

 private:
  const Trace& trace_;
  bool with_chunk_;
  std::array<NameUnit, kCellKindCount> unit_;
};

// "step 3 (2.21 s)".
std::string step_name(int32_t step, int64_t dur_ns);

// A cell's end, never before its start: viewers drop negative durations.
inline int64_t shown_end_ns(const Cells& cells, size_t i) {
  return cells.end_ns[i] < cells.start_ns[i] ? cells.start_ns[i] : cells.end_ns[i];
}

}  // namespace stageline
