// Sums by name and kind over stretches of the run, so that the totals of an area need not look at every slice in it.
//
// Neighbouring lanes form a group. A block covers the slices of a group that start in a stretch of time. It is closed
// once its entries are few compared with its slices. Names that repeat give short blocks, while a group of names that
// never repeat gets none and is read slice by slice. So the sums take at most sizeof(NameSum) / kSlicesPerEntry = 1/2
// byte per slice in any trace. An area's edge cuts one block of each group, for any number of lanes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/timeline/name_kinds.h"

namespace stageline {

struct NameSum {
  uint32_t place = 0;  // in NameKinds
  uint32_t count = 0;  // 0: slices of the name only hold slices of this block, and themselves are in an earlier one
  int64_t min_ns = 0, max_ns = 0;
  int64_t sum_ns = 0;   // sum of whole durations
  int64_t self_ns = 0;  // sum_ns less the time of the block's slices that are directly inside slices of the name
};

struct SumBlock {
  int64_t from_ns = 0, to_ns = 0;   // the block has the slices that start in [from, to)
  uint32_t first = 0, entries = 0;  // indexes into the group's sums
};

struct LaneGroup {
  std::vector<uint32_t> lanes;   // lanes with slices, ascending
  std::vector<SumBlock> blocks;  // one after another in time; slices after the last one may be in no block
  std::vector<NameSum> sums;

  std::span<const NameSum> sums_of(const SumBlock& block) const {
    return std::span(sums).subspan(block.first, block.entries);
  }
};

class AreaSums {
 public:
  static constexpr size_t kSlicesPerEntry = 80;
  static constexpr size_t kMinSlices = 4096;               // minimum slices of a block
  static constexpr size_t kGroupSlices = size_t{1} << 18;  // a group takes no more lanes once it has this many slices
  static constexpr size_t kGroupLanes = 256;
  // O(slices), parallel over groups.
  AreaSums(const std::vector<ViewLane>& lanes, const NameKinds& kinds);

  const std::vector<LaneGroup>& groups() const { return groups_; }
  size_t bytes() const;

 private:
  std::vector<LaneGroup> groups_;
};

}  // namespace stageline
