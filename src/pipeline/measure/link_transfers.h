// Every message of a run with the time it took, from the best evidence that was recorded.
#pragma once

#include "pipeline/replay/graph_ops.h"

namespace stageline {

enum class LinkEvidence : uint8_t {
  kNone,      // there is one stage, or nothing links the stages
  kMessages,  // recorded sends and receives
  kGaps,      // gaps from the end of a cell to the start of the cell that waited for it
};

struct LinkTransfer {
  int32_t from_part = 0, to_part = 0;
  int32_t step = 0;
  bool forward = true;
  double ns = 0;           // may be below 0 by as much as clocks are off
  double bytes = -1;       // −1: unknown
  double end_gap_ns = -1;  // distance of the ends of send and receive; −1: the ends were not recorded
  // Cells of the send and of the receive; with kGaps, the producer and the cell that waited; kNoSlice: unknown.
  uint32_t from_cell = kNoSlice, to_cell = kNoSlice;
};

// A gap is kept as the number of its link, 4 B instead of 48, and worked out when it is asked for: 16.8 million cells
// have 15.7 million gaps.
struct LinkTransfers {
  LinkEvidence evidence = LinkEvidence::kNone;
  bool mapped = false;  // true: times are on common time; false: as stamped

  std::vector<LinkTransfer> messages;  // with kMessages
  std::vector<uint32_t> gaps;          // with kGaps: indices into Trace::links
  const Trace* trace = nullptr;        // that of the gaps

  size_t size() const { return evidence == LinkEvidence::kGaps ? gaps.size() : messages.size(); }
  LinkTransfer at(size_t i) const;
};

// Takes the graph's groups where the graph was made of recorded operations; otherwise matched messages; otherwise the
// links between cells whose receiver waited. The trace must outlive the result. O(cells log cells).
LinkTransfers find_transfers(const Trace& trace, const StepGraph& graph);

// Estimates how long a message takes from one rank to another: one number for each directed pair of ranks.
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
