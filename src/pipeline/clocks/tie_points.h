// Gathers the matches of a tie as bounds and samples of y(t) = clock b − clock a, in one walk and without storing the
// matches. Of bounds the hull is kept; samples are thinned evenly to a fixed number, always the same ones.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/clocks/hull.h"
#include "pipeline/clocks/match.h"

namespace stageline::align {

// A clock: that of one machine or of one rank. A new segment begins at each of `breaks`, the timestamps at which the
// clock was set.
struct ClockDomain {
  std::vector<size_t> parts;
  int64_t coarse_ns = 0;             // timestamps minus this value are roughly timestamps of the first domain
  std::vector<int64_t> breaks = {};  // NOLINT(readability-redundant-member-init): GCC wants it
  int64_t grain_ns =
      1;  // timestamps are whole multiples of this (stamp_grain.h), so no timestamp is known more exactly
  int32_t segment_of(int64_t stamp_ns) const;
};

// The apparent difference of the clocks at the end of a message: y, plus or minus the time that the message took after
// its sender was done.
struct Sample {
  double t = 0, y = 0;
  double causal = 0;      // the bound that always holds: from above on y where a sent, from below where b sent
  double rendezvous = 0;  // the bound that holds if senders wait: from below on y where a sent, from above where b sent
};

// Keeps at most kMost samples, every 2^k-th of those added.
class Samples {
 public:
  static constexpr size_t kMost = 4096;
  void add(const Sample& sample);
  const std::vector<Sample>& kept() const { return kept_; }
  int64_t count() const { return count_; }
  void merge(const Samples& other);
  void shift(double dt);
  void sort();  // sorted by time, because channels are added one after another

 private:
  std::vector<Sample> kept_;
  int64_t count_ = 0, stride_ = 1;
};

// The points between one segment of clock a and one of clock b, a before b.
struct TiePoints {
  int32_t segment_a = 0, segment_b = 0;
  Samples from_a, from_b;
  Bounds causal;      // bounds that always hold
  Bounds rendezvous;  // bounds that hold when senders wait for their receivers
  void merge(const TiePoints& other);
  // Moves times, which were taken from the receivers' clocks: points of messages from a by dt_a, those from b by dt_b.
  void shift(double dt_a, double dt_b);
};

// The clocks of a tie, and which of its matches to use.
struct Frame {
  const ClockDomain* a = nullptr;
  const ClockDomain* b = nullptr;
  bool swapped = false;   // clock a is that of Tie::part_b
  int64_t middle_ns = 0;  // t = 0, on the coarse axis
  double from_t = -1e300, to_t = 1e300;
  // With `trimmed`, leaves out matches whose bound the line y = intercept + slope · t breaks by more than `slack`; they
  // are known to be bad.
  bool trimmed = false;
  double intercept = 0, slope = 0, slack = 0;
  int32_t only_a = -1, only_b = -1;  // use only these segments; −1 stands for all
};

struct Gathered {
  std::vector<TiePoints> points;  // in the order of their first match
  Unmatched unmatched;
  int64_t trimmed_count = 0;
  uint32_t first_trimmed = UINT32_MAX;  // the match's tag
};
Gathered gather(const Matches& matches, const Tie& tie, const Frame& frame);

// Estimates clock b minus clock a from the first matches of the tie; false when it has none.
bool rough_difference(const Matches& matches, const Tie& tie, int64_t& difference_ns);

}  // namespace stageline::align
