// Estimates how long a message takes from one rank to another: one number for each directed pair of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace stageline {

struct EdgeLatency {
  int32_t from = 0, to = 0;  // indexes of Trace::parts
  double ns = 0;
  bool by_messages = false;
};

// The latency between two ranks, measured in one pipeline: the median gap between the end of a producer and the start
// of a cell with no other pending dependency.
struct GapSample {
  int32_t from = 0, to = 0;
  double median_ns = 0;
  int64_t count = 0;
};

class EdgeLatencies {
 public:
  // A pair with recorded messages takes their median of receive's end − max(start of send, start of receive), on common
  // time. Any other pair takes the median over pipelines of their medians of gaps. Clocks are only nearly aligned, so a
  // negative median counts as 0. O(messages log messages + samples log samples).
  EdgeLatencies(const Trace& trace, std::vector<GapSample> samples);
  // The latency of a pair; where the pair is unknown, the median of all pairs. O(log pairs).
  double of(int32_t from, int32_t to) const;
  const std::vector<EdgeLatency>& edges() const { return edges_; }
  double median_ns() const { return median_ns_; }

 private:
  const EdgeLatency* find(int32_t from, int32_t to) const;
  std::vector<EdgeLatency> edges_;  // sorted by (from, to)
  double median_ns_ = 0;
};

}  // namespace stageline
