// The matches of a tie as bounds and samples of y(t) = clock b − clock a, gathered in one walk and without storing
// them: bounds keep their hull, samples are thinned to a fixed number, evenly and always the same ones.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/clocks/hull.h"
#include "pipeline/clocks/match.h"

namespace stageline::align {

// A clock: one machine's, or one rank's. A new segment begins at each of `breaks` (stamps where it was set).
struct ClockDomain {
  std::vector<size_t> parts;
  int64_t coarse_ns = 0;             // its stamps minus this are roughly those of the first domain
  std::vector<int64_t> breaks = {};  // NOLINT(readability-redundant-member-init): GCC wants it
  int64_t grain_ns = 1;              // its stamps are whole multiples of this (stamp_grain.h): none is known better
  int32_t segment_of(int64_t stamp_ns) const;
};

// y between the two clocks when a message ended: exact but for the time the message took after its sender was done.
struct Sample {
  double t = 0, y = 0;
  double causal = 0;      // the bound that always holds: on y from above when a sent, from below when b did
  double rendezvous = 0;  // the bound that holds if senders wait: on y from below when a sent, from above when b did
};

// Keeps at most kMost samples: every 2^k-th.
class Samples {
 public:
  static constexpr size_t kMost = 4096;
  void add(const Sample& sample);
  const std::vector<Sample>& kept() const { return kept_; }
  int64_t count() const { return count_; }
  void merge(const Samples& other);
  void shift(double dt);
  void sort();  // by time: several channels come one after another

 private:
  std::vector<Sample> kept_;
  int64_t count_ = 0, stride_ = 1;
};

// One (segment of clock a, segment of clock b), a before b.
struct TiePoints {
  int32_t segment_a = 0, segment_b = 0;
  Samples from_a, from_b;
  Bounds causal;      // always true
  Bounds rendezvous;  // true when senders wait for their receivers
  void merge(const TiePoints& other);
  // Times were taken from the receivers' clocks: what a wrote moves by dt_a, what b wrote by dt_b.
  void shift(double dt_a, double dt_b);
};

// Where the clocks of a tie are, and which of its matches count.
struct Frame {
  const ClockDomain* a = nullptr;
  const ClockDomain* b = nullptr;
  bool swapped = false;   // a's clock is that of Tie::part_b
  int64_t middle_ns = 0;  // t = 0, on the coarse axis
  double from_t = -1e300, to_t = 1e300;
  // Leaves out bounds that the line y = intercept + slope · t breaks by more than `slack`: matches known to be bad.
  bool trimmed = false;
  double intercept = 0, slope = 0, slack = 0;
  int32_t only_a = -1, only_b = -1;  // segments; −1: all
};

struct Gathered {
  std::vector<TiePoints> points;  // in order of their first match
  Unmatched unmatched;
  int64_t trimmed_count = 0;
  uint32_t first_trimmed = UINT32_MAX;  // tag
};
Gathered gather(const Matches& matches, const Tie& tie, const Frame& frame);

// First match of a tie as a rough difference of the two clocks, part b minus part a; false without any.
bool rough_difference(const Matches& matches, const Tie& tie, int64_t& difference_ns);

}  // namespace stageline::align
