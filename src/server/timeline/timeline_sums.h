// The sums of a timeline by name and kind over stretches of the run, made once.
#pragma once

#include "server/timeline/view_lane.h"

namespace stageline {

// Computes which kinds each name occurs as, and a dense number (a place) for every such pair, so that sums by name and
// kind are arrays.
class NameKinds {
 public:
  // O(slices), parallel. Takes 8 bytes a name and 5 bytes a pair, and at most 4 MiB for a table that gives places at
  // once.
  NameKinds(const std::vector<ViewLane>& lanes, size_t name_count);

  size_t size() const { return kind_.size(); }
  // The place of a pair, which must occur.
  uint32_t place(StringId name, uint8_t kind) const {
    if (!table_.empty()) return table_[size_t{table_row_[kind]} * kinds_.size() + name];
    const uint32_t before = kinds_[name] & ((uint32_t{1} << kind) - 1);
    return first_[name] + std::popcount(before);
  }
  uint32_t place_of(const ViewLane& lane, size_t slice) const { return place(lane.names[slice], lane.kind(slice)); }
  StringId name(uint32_t place) const { return name_[place]; }
  uint8_t kind(uint32_t place) const { return kind_[place]; }

 private:
  static constexpr size_t kMaxTable = size_t{1} << 20;

  std::vector<uint32_t> kinds_;  // for each name, one bit for each kind
  std::vector<uint32_t> first_;  // for each name its first place
  std::vector<StringId> name_;   // for each place
  std::vector<uint8_t> kind_;
  std::vector<uint32_t> table_;  // [kinds that occur][names] → place; empty where it would be large
  std::array<uint8_t, kViewKindCount> table_row_{};
};

// Sums by name and kind over stretches of the run, so that the totals of an area need not look at every slice in it.
//
// Neighbouring lanes form a group. A block covers the slices of a group that start in a stretch of time. It is closed
// once its entries are few compared with its slices. Names that repeat give short blocks, while a group of names that
// never repeat gets none and is read slice by slice. So the sums take at most sizeof(NameSum) / kSlicesPerEntry = 1/2
// byte per slice in any trace. An area's edge cuts one block of each group, for any number of lanes.
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

// Computes how often slices of a name and kind last how long, over all lanes, for stretches of the run. Quantiles of a
// large area are sums of these counts and of the slices at its edges.
//
// The run is cut into stretches of equally many starts, as many stretches as fit into 1/4 byte per slice. It is one
// stretch if names and durations are so various that a second one would not fit.
class DurationCounts {
 public:
  struct Count {
    // `bin` is a duration_bin(); a count that does not fit is continued in another entry of the same bin.
    uint16_t bin = 0, count = 0;
  };
  static constexpr size_t kMaxPlaces = 1024;  // only the first places of NameKinds have counts
  static constexpr size_t kMaxStretches = 64;
  static constexpr size_t kSlicesPerCount = 16;  // for each count beyond the first stretch

  // O(slices), parallel. `kinds` belongs to these lanes.
  DurationCounts(const std::vector<ViewLane>& lanes, const NameKinds& kinds);

  size_t stretch_count() const { return borders_ns_.size() - 1; }
  // Stretch k has the slices that start in [border(k), border(k + 1)). The first border is 0, the last one is after all
  // slices.
  int64_t border_ns(size_t k) const { return borders_ns_[k]; }
  bool has(uint32_t place) const { return place < places_; }
  std::span<const Count> counts(size_t stretch, uint32_t place) const {
    const size_t at = stretch * places_ + place;
    return std::span(counts_).subspan(first_[at], first_[at + 1] - first_[at]);
  }
  // The first and last bin in which slices of a place lie.
  uint16_t first_bin(uint32_t place) const { return ranges_[place].first; }
  uint16_t last_bin(uint32_t place) const { return ranges_[place].last; }
  size_t bytes() const;

 private:
  struct Range {
    uint16_t first = UINT16_MAX, last = 0;
  };
  size_t places_ = 0;
  std::vector<Range> ranges_;  // for each place
  std::vector<int64_t> borders_ns_;
  std::vector<uint32_t> first_;  // at stretch · places + place, and one entry more for the end
  std::vector<Count> counts_;
};

// Counts of durations in bins of 1/32 of an octave, which give quantiles and histograms without keeping the durations.
inline constexpr int kSubBits = 5;
inline constexpr uint64_t kSubBins = 1 << kSubBits;  // bins of one octave
inline constexpr size_t kDurationBins = (62 - kSubBits + 1) * kSubBins;

// Returns the bin of a duration, 0 ≤ dur_ns < 2^62, ascending: one bin for each nanosecond below 32 ns, then 32 for
// each power of two. Example: 1 000 ns lies in bin 190, which begins at 992 ns.
constexpr size_t duration_bin(int64_t dur_ns) {
  const uint64_t d = dur_ns;
  if (d < kSubBins) return d;
  const int octave = static_cast<int>(std::bit_width(d)) - 1 - kSubBits;
  return (octave + 1) * kSubBins + ((d >> octave) & (kSubBins - 1));
}
// Returns the minimum duration in a bin.
constexpr int64_t bin_start_ns(size_t bin) {
  if (bin < kSubBins) return bin;
  return ((bin & (kSubBins - 1)) + kSubBins) << ((bin >> kSubBits) - 1);
}
static_assert(duration_bin(1000) == 190 && bin_start_ns(190) == 992);

// A quantile by nearest rank, taken as the middle of its bin and kept within [min, max]. `bins` are the counts of the
// bins from `first` on.
inline int64_t binned_quantile(std::span<const uint32_t> bins, size_t first, uint64_t count, double share,
                               int64_t min_ns, int64_t max_ns) {
  const auto wanted = static_cast<uint64_t>(share * (count - 1)) + 1;
  uint64_t so_far = 0;
  for (size_t k = 0; k < bins.size(); ++k) {
    so_far += bins[k];
    if (so_far < wanted) continue;
    const size_t b = first + k;
    const int64_t low = bin_start_ns(b), high = b + 1 < kDurationBins ? bin_start_ns(b + 1) - 1 : low;
    return std::clamp(low + (high - low) / 2, min_ns, max_ns);
  }
  return max_ns;
}

}  // namespace stageline
