// Computes how often slices of a name and kind last how long, over all lanes, for stretches of the run. Quantiles of a
// large area are sums of these counts and of the slices at its edges.
//
// The run is cut into stretches of equally many starts, as many stretches as fit into 1/4 byte per slice. It is one
// stretch if names and durations are so various that a second one would not fit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/timeline/name_kinds.h"

namespace stageline {

class DurationCounts {
 public:
  struct Count {
    uint16_t bin = 0,
             // bin: of server/timeline/duration_bins.h; a count that does not fit is continued in another entry of the
             // same bin.
        count = 0;
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

}  // namespace stageline
