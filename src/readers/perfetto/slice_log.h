// Which END closes which BEGIN. Two kinds of writers, two rules:
//
//   torch   B0 B1 B2 … E0 E1 E2 …   all begins of a group, then all ends, in the same order and in no order of time:
//           the k-th end closes the k-th begin, whatever overlaps or touches
//   others  B0 B1 E1 E0 …           per track a stack, in order of time; equal stamps keep the order of the file
//
// A run of begins and as many ends of the same tracks is torch's where its stamps are in no order, or where the begins
// need the sequence's state and the ends do not; else it is a stack that happens to be as deep as the run is long.
#pragma once

#include <cstdint>
#include <vector>

#include "readers/common/rows/file_rows.h"

namespace stageline::pftrace {

inline constexpr uint32_t kNoRow = UINT32_MAX;

class SliceLog {
 public:
  void begin(int64_t time, uint32_t track, uint32_t row, uint32_t sequence, bool needs_state);
  // Its number, for row_of_end().
  uint32_t end(int64_t time, uint32_t track, uint32_t sequence, bool needs_state);
  size_t size() const { return entries_.size(); }
  void reserve(size_t entries) { entries_.reserve(entries); }

  struct Pairs {
    std::vector<uint32_t> open_rows;  // of begins without an end, in the order of the file
    int64_t unmatched_ends = 0;
    int64_t paired_by_index = 0;
  };
  // Sets the duration of every row that has an end. Once, after the last entry. O(n), and O(n log n) for tracks that
  // are not in order of time.
  Pairs pair(std::vector<kineto::Row>& rows);
  // After pair(): the row that an end closed; kNoRow when there was none.
  uint32_t row_of_end(uint32_t end) const { return entries_[end].row; }

 private:
  struct Entry {
    int64_t time;
    uint32_t track;  // the highest bit: an end
    uint32_t row;    // of a begin; of an end once it is paired
  };
  static constexpr uint32_t kEndBit = uint32_t{1} << 31;
  struct Run {
    uint32_t first = 0, begins = 0, ends = 0;
    uint32_t sequence = UINT32_MAX;
    int64_t last_time = INT64_MIN;
    bool unordered = false, same_tracks = true, begins_need = true, ends_need = false;
  };
  struct IndexRun {
    uint32_t first, begins, ends;
  };
  void close_run(bool at_end);
  void pair_run(const IndexRun& run, std::vector<kineto::Row>& rows, Pairs& pairs);
  void pair_tracks(std::vector<kineto::Row>& rows, Pairs& pairs);

  std::vector<Entry> entries_;
  Run run_;
  std::vector<IndexRun> runs_;  // those that are torch's
};

}  // namespace stageline::pftrace
