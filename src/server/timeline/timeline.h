// The timeline: what the viewer draws of a Trace, prepared for questions about any stretch of time at any zoom.
//
//   Timeline ── lanes[]   of every rank: its cells by kind of lane, its streams and threads, its counters
//               └─ rows[] slices of one lane laid out so that none overlap: the nesting depth where they nest
//
// Times are nanoseconds from the run's start (where every rank counts from its own zero, from the rank's first event).
// They are never negative and at most kLatestNs; what a damaged source says beyond that is drawn there.
//
// Memory: the columns of slices are the Trace's own. A row needs 1/64 byte per slice, and 8 bytes per kind for every
// kBlock slices. A row that is not its whole lane needs some 1 1/4 bytes per slice more. Sums and counts for areas take
// at most 3/4 byte per slice. Cells are copied, 29 bytes each.
#pragma once

#include <mutex>

#include "server/timeline/view_lane.h"

namespace stageline {

// The names of slices in lanes: the trace's names with their ids, and after them the few that the viewer adds, such as
// codes of cells that no slice names.
class ViewNames {
 public:
  // `pool` must outlive it and not grow.
  explicit ViewNames(const StringPool& pool) : pool_(pool) {}
  // The id of a text; the text is added where the trace does not have it. O(added).
  StringId intern(std::string_view text) {
    if (const auto known = pool_.find(text)) return *known;
    const auto at = std::ranges::find(added_, text);
    const auto id = static_cast<StringId>(pool_.size() + (at - added_.begin()));
    if (at == added_.end()) added_.emplace_back(text);
    return id;
  }
  std::string_view text(StringId id) const {
    return id < pool_.size() ? pool_.text(id) : std::string_view(added_[id - pool_.size()]);
  }
  size_t size() const { return pool_.size() + added_.size(); }

 private:
  const StringPool& pool_;
  std::deque<std::string> added_;  // a deque, so that texts stay where they are
};

const char* lane_type_name(ViewLaneType type);  // "cells", "stream", "thread", "counter"

struct ViewStep {
  int64_t number = 0, start_ns = 0, end_ns = 0;
  double sum_ns = 0;   // lengths of the profiler's ranges, each on its own rank
  int64_t ranges = 0;  // their number; 0: the step is of cells
};

class NameIndex;
class NameKinds;
class AreaSums;
class DurationCounts;

class Timeline {
 public:
  // `trace` must have its clocks on one axis (DrawnRun) and outlive this. O(slices), parallel over lanes.
  explicit Timeline(const Trace& trace);
  explicit Timeline(Trace&&) = delete;
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  const Trace& trace() const { return trace_; }
  const ViewNames& names() const { return names_; }
  const NameIndex& occurrences() const { return *occurrences_; }
  const NameKinds& name_kinds() const { return *name_kinds_; }
  // The first request makes it, which takes a third of a second for 17 million slices on two cores. Thread-safe.
  const AreaSums& area_sums() const;
  const DurationCounts& duration_counts() const;
  const std::vector<ViewLane>& lanes() const { return lanes_; }
  const std::vector<ViewStep>& steps() const { return steps_; }
  // The timestamp that is 0; where ranks have zeros of their own, the first rank's.
  int64_t origin_ns() const { return origin_ns_; }
  int64_t span_ns() const { return span_ns_; }
  int64_t zero_ns(size_t part) const { return zero_[part]; }  // the rank's timestamp that is 0
  // The same number as in `stageline info`: cells that were made from slices are in lanes of their own besides these,
  // and are not counted again.
  uint64_t slice_count() const { return slice_count_; }
  int64_t chunk_count() const { return chunk_count_; }       // model chunks on a rank; 0: there are no cells
  uint32_t kinds_present() const { return kinds_present_; }  // one bit for each kind

  SlicePlace place_of_slice(uint32_t part, uint32_t slice) const;  // of a slice in Part::slices; none: it is not drawn
  SlicePlace place_of_cell(uint32_t cell) const;

 private:
  void add_cell_lanes();
  void add_slice_lanes();
  void add_counter_lanes();
  void set_zeros();
  void sort_lanes();
  void find_repeats();
  void build_rows();
  void find_steps();

  const Trace& trace_;
  ViewNames names_;
  KindTable kind_table_;
  std::vector<ViewLane> lanes_;
  std::vector<ViewStep> steps_;
  std::unique_ptr<NameIndex> occurrences_;
  std::unique_ptr<NameKinds> name_kinds_;
  mutable std::once_flag area_sums_once_, duration_counts_once_;
  mutable std::unique_ptr<AreaSums> area_sums_;
  mutable std::unique_ptr<DurationCounts> duration_counts_;
  std::vector<int64_t> zero_;  // for each part
  struct SliceLane {
    size_t begin, end;
    uint32_t lane;
  };
  std::vector<std::vector<SliceLane>> slice_lanes_;  // for each part, sorted by begin
  mutable std::once_flag cell_places_once_;
  mutable std::vector<SlicePlace> cell_places_;  // for each cell; made when first asked
  int64_t origin_ns_ = 0, span_ns_ = 0;
  uint64_t slice_count_ = 0;
  uint32_t kinds_present_ = 0;
  int64_t chunk_count_ = 0;
};

}  // namespace stageline
