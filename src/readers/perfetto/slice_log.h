// Finds which END closes which BEGIN. There are two rules for two kinds of writers:
//
//   torch   B0 B1 B2 … E0 E1 E2 …   all begins of a group, then all ends, in the same order and in no order of time:
//           the k-th end closes the k-th begin, whatever overlaps or touches
//   others  B0 B1 E1 E0 …           per track a stack, in order of time; equal timestamps keep the order of the file
//
// A run of begins and as many ends of the same tracks is torch's in two cases. Its timestamps are in no order, or the
// begins need the sequence's state and the ends do not. Otherwise it is a stack that happens to be as deep as the run
// is long.
//
// Nearly all files are of the second kind and in order on every track. Their ends are paired as they come, and an end
// is kept as the row it closed. Once a track's time goes back or a run turns out to be torch's, these are written out
// as entries, begins and ends alike. Then everything is paired after the last entry.
#pragma once

#include "readers/common/rows/file_rows.h"

namespace stageline::pftrace {

inline constexpr uint32_t kNoRow = UINT32_MAX;

class SliceLog {
 public:
  // `rows`: where begin() and end() find the rows of begins, with their starts and tracks, and set durations.
  explicit SliceLog(std::vector<rows::Row>& rows) : rows_(rows) {}

  void begin(int64_t time, uint32_t track, uint32_t row, uint32_t sequence, bool needs_state);
  // Its number, for row_of_end().
  uint32_t end(int64_t time, uint32_t track, uint32_t sequence, bool needs_state);
  void reserve(size_t ends) { closed_.reserve(ends); }

  struct Pairs {
    std::vector<uint32_t> open_rows;  // of begins without an end, in the order of the file
    int64_t unmatched_ends = 0;
    int64_t paired_by_index = 0;
  };
  // Every row that has an end has its duration then. Once, after the last entry. O(n) at most, and O(n log n) for
  // tracks that are not in order of time.
  Pairs pair();
  // After pair(): the row that an end closed; kNoRow when there was none.
  uint32_t row_of_end(uint32_t end) const { return closed_[end]; }

 private:
  struct Entry {
    int64_t time;
    uint32_t track;  // the highest bit: an end
    uint32_t at;     // of a begin its row, of an end its number
  };
  static constexpr uint32_t kEndBit = uint32_t{1} << 31;
  struct Track {
    int64_t last_time = INT64_MIN;
    std::vector<uint32_t> open;  // rows, the innermost last
  };
  struct Run {
    size_t first = 0;  // entry
    uint32_t begins = 0, ends = 0;
    uint32_t sequence = UINT32_MAX;
    int64_t last_time = INT64_MIN;
    bool unordered = false, same_tracks = true, begins_need = true, ends_need = false;
  };
  struct IndexRun {
    size_t first;
    uint32_t begins, ends;
  };
  struct LostEnd {
    int64_t time;
    uint32_t track, end;
  };
  void new_run(uint32_t sequence);
  void close_run(bool at_end);
  uint32_t lost_end(int64_t time, uint32_t track);
  Track& track_at(uint32_t track) {
    if (track >= tracks_.size()) tracks_.resize(track + size_t{1});
    return tracks_[track];
  }
  void write_out();
  void pair_run(const IndexRun& run, Pairs& pairs);
  void pair_tracks(Pairs& pairs);

  std::vector<rows::Row>& rows_;
  std::vector<uint32_t> closed_;  // by end: its row; kNoRow: none, or not known yet
  size_t entry_count_ = 0;
  Run run_;
  std::vector<uint32_t> run_rows_;  // of its begins

  // While ends are paired as they come: what entries can be written out from.
  bool in_order_ = true;
  std::vector<Track> tracks_;
  std::vector<bool> is_end_;        // by entry
  std::vector<bool> is_begun_;      // by row: a begin's; instants and whole slices are rows too
  std::vector<LostEnd> lost_ends_;  // that closed nothing

  // Once they are not.
  std::vector<Entry> entries_;
  std::vector<IndexRun> runs_;  // those that are torch's
};

inline void SliceLog::begin(int64_t time, uint32_t track, uint32_t row, uint32_t sequence, bool needs_state) {
  if (run_.ends > 0 || run_.sequence != sequence) new_run(sequence);
  ++run_.begins;
  run_.begins_need &= needs_state;
  run_.unordered |= time < run_.last_time;
  run_.last_time = time;
  run_rows_.push_back(row);
  if (in_order_) {
    Track& on = track_at(track);
    if (time >= on.last_time) {
      on.last_time = time;
      on.open.push_back(row);
      is_end_.push_back(false);
      if (is_begun_.size() < row) is_begun_.resize(row, false);
      is_begun_.push_back(true);
      ++entry_count_;
      return;
    }
    write_out();
  }
  entries_.push_back({time, track, row});
  ++entry_count_;
}

inline uint32_t SliceLog::end(int64_t time, uint32_t track, uint32_t sequence, bool needs_state) {
  if (run_.sequence != sequence || run_.ends >= run_.begins) {
    if (run_.sequence != sequence) close_run(false);
    run_.begins = 0;  // an end too many, or another's: no run
  } else {
    const rows::Row& opened = rows_[run_rows_[run_.ends]];
    run_.same_tracks &= opened.thread == track && time >= opened.start_ns;
    run_.ends_need |= needs_state;
    run_.unordered |= time < run_.last_time;
    run_.last_time = time;
    ++run_.ends;
  }
  if (in_order_) {
    Track& on = track_at(track);
    if (time >= on.last_time) {
      on.last_time = time;
      is_end_.push_back(true);
      ++entry_count_;
      if (on.open.empty()) return lost_end(time, track);
      const uint32_t row = on.open.back();
      on.open.pop_back();
      rows_[row].dur_ns = time - rows_[row].start_ns;
      closed_.push_back(row);
      return static_cast<uint32_t>(closed_.size() - 1);
    }
    write_out();
  }
  const auto number = static_cast<uint32_t>(closed_.size());
  entries_.push_back({time, track | kEndBit, number});
  ++entry_count_;
  closed_.push_back(kNoRow);
  return number;
}

}  // namespace stageline::pftrace
