// How often slices of a name and kind last how long, over all lanes, by stretches of the run: quantiles of a large area
// are sums of these, and of the slices at its edges.
//
// The run is cut into as many stretches, of as many starts each, as leave room for at most 1/4 B a slice; one where
// names and durations are so many that a second would not fit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/name_kinds.h"

namespace stageline {

class DurationCounts {
 public:
  struct Count {
    uint16_t bin = 0,
             count = 0;  // of server/duration_bins.h; what is more than a count holds comes as another of the bin
  };
  static constexpr size_t kMostPlaces = 1024;  // the first of NameKinds; of others nothing is kept
  static constexpr size_t kMostStretches = 64;
  static constexpr size_t kSlicesPerCount = 16;  // beyond the first stretch

  // O(slices), parallel. `kinds` of these lanes.
  DurationCounts(const std::vector<ViewLane>& lanes, const NameKinds& kinds);

  size_t stretch_count() const { return borders_ns_.size() - 1; }
  // Slices that start in [border(k), border(k + 1)) are those of stretch k. The first is 0, the last behind all.
  int64_t border_ns(size_t k) const { return borders_ns_[k]; }
  bool has(uint32_t place) const { return place < places_; }
  std::span<const Count> counts(size_t stretch, uint32_t place) const {
    const size_t at = stretch * places_ + place;
    return std::span(counts_).subspan(first_[at], first_[at + 1] - first_[at]);
  }
  // The bins, from one to another, in which any slice of a place lies.
  uint16_t first_bin(uint32_t place) const { return ranges_[place].first; }
  uint16_t last_bin(uint32_t place) const { return ranges_[place].last; }
  size_t bytes() const;

 private:
  struct Range {
    uint16_t first = UINT16_MAX, last = 0;
  };
  size_t places_ = 0;
  std::vector<Range> ranges_;  // by place
  std::vector<int64_t> borders_ns_;
  std::vector<uint32_t> first_;  // [stretch · places + place], and one more
  std::vector<Count> counts_;
};

}  // namespace stageline
