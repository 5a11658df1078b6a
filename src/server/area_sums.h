// Sums by name and kind over stretches of a lane, so that the totals of an area need not look at every slice in it.
//
// A block is a stretch of a lane's slices in its own order. It ends where its entries are few beside its slices: names
// that repeat give short blocks, a lane of names that never do gets none and is looked at slice by slice. So the sums
// take at most sizeof(NameSum) / kSlicesPerEntry = 1/2 B a slice, whatever is in the trace.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/name_kinds.h"

namespace stageline {

struct NameSum {
  uint32_t place = 0;  // of NameKinds
  uint32_t count = 0;  // 0: the name only holds slices of this block, and stands before it
  uint32_t min_ns = 0, max_ns = 0;
  int64_t sum_ns = 0;   // of whole durations
  int64_t self_ns = 0;  // that, less the time of the block's slices that stand directly inside slices of the name
};

struct SumBlock {
  uint32_t from = 0, to = 0;        // slices of the lane
  uint32_t first = 0, entries = 0;  // of the lane's sums
  int64_t last_end_ns = 0;          // of its slices
};

class AreaSums {
 public:
  static constexpr size_t kSlicesPerEntry = 64;
  static constexpr size_t kLeastSlices = 4096;  // of a block
  // O(slices), parallel over lanes. `kinds` outlives it.
  AreaSums(const std::vector<ViewLane>& lanes, const NameKinds& kinds);

  // By start; between and behind them may be slices that stand in none.
  const std::vector<SumBlock>& blocks(size_t lane) const { return lanes_[lane].blocks; }
  std::span<const NameSum> sums(size_t lane, const SumBlock& block) const {
    return std::span(lanes_[lane].sums).subspan(block.first, block.entries);
  }
  // How often slices of a name and kind last how long, over all lanes: of the first kMostBinned places. By bin.
  struct BinCount {
    uint16_t bin = 0;
    uint32_t count = 0;
  };
  static constexpr size_t kMostBinned = 1024;
  bool has_bins(uint32_t place) const { return place + size_t{1} < first_bin_.size(); }
  std::span<const BinCount> bins(uint32_t place) const {
    return std::span(bins_).subspan(first_bin_[place], first_bin_[place + 1] - first_bin_[place]);
  }
  uint64_t slice_count() const { return slice_count_; }  // that have a row
  size_t bytes() const;

 private:
  void keep_bins(const std::vector<std::vector<uint32_t>>& counted);

  struct OfLane {
    std::vector<SumBlock> blocks;
    std::vector<NameSum> sums;
  };
  std::vector<OfLane> lanes_;
  std::vector<uint32_t> first_bin_;  // by place, and one more
  std::vector<BinCount> bins_;
  uint64_t slice_count_ = 0;
};

}  // namespace stageline
