// How long a message takes from one rank to another: one number for each directed pair of ranks.
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

// One pipeline's evidence: the median of the gaps between the end of a producer and the start of the cell that had
// nothing else to wait for.
struct GapSample {
  int32_t from = 0, to = 0;
  double median_ns = 0;
  int64_t count = 0;
};

class EdgeLatencies {
 public:
  // Recorded messages first: the median of receive's end − max(start of send, start of receive), on common time. Else
  // the median over pipelines of their medians of gaps. Less than nothing is nothing: clocks are not that good.
  // O(messages log messages + samples log samples).
  EdgeLatencies(const Trace& trace, std::vector<GapSample> samples);
  // By pair; the median of all pairs where this one is unknown. O(log pairs).
  double of(int32_t from, int32_t to) const;
  bool knows(int32_t from, int32_t to) const;
  const std::vector<EdgeLatency>& edges() const { return edges_; }
  double median_ns() const { return median_ns_; }

 private:
  const EdgeLatency* find(int32_t from, int32_t to) const;
  std::vector<EdgeLatency> edges_;  // by (from, to)
  double median_ns_ = 0;
};

}  // namespace stageline
