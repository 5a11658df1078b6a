// Counts of durations in bins of 1/32 of an octave, which give quantiles and histograms without keeping the durations.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace stageline {

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
