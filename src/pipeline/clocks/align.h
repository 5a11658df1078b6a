// One clock: offset and drift of every rank's clock, with error bounds, from what the ranks said to each other.
//
// Method: docs/howto/clocks.md and the headers beside this one. In short: a message cannot arrive before it was sent,
// so every match bounds the difference of two clocks; hulls of those bounds give the lines that are possible, robust
// lines through the ends of messages the likely ones; shortest paths and least squares carry both over the graph of
// ranks.
//
// Prior art: Duda et al. 1987 (hulls), Clément & Dagenais 2009, Poirier et al. 2010, Jabbarifar et al. 2013/14 (tracing
// over networks), dPRO 2022 (send and receive as constraints, constant offsets). Ours: pipeline messages and
// collectives, drift, clocks that are set in mid-run, and the bounds shown to the user.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "model/clock_map.h"
#include "model/trace.h"
#include "pipeline/clocks/match.h"

namespace stageline {

struct ClockAlignment {
  std::vector<ClockMap> clocks;  // by part; the reference is the first part's clock
  std::vector<size_t> untied;    // parts that nothing ties to the reference, and why they are named in `notes`
  int64_t match_count = 0;
  Diagnostics notes;  // clock.aligned, clock.untied, clock.bad_match, clock.step, …
};

struct AlignRequest {
  std::vector<align::ByHand> by_hand;
  bool each_rank_alone = false;  // also where ranks share a clock by what the source says: to check it
};

// Trace as read (raw columns), cells sorted, links drawn. Clocks are those of machines where the source names several
// and does not say that every rank counts from its own zero; else every rank has its own. Where steps restart per rank,
// each step has its own offset and no drift.
// O(cells + matches), over ties in parallel; deterministic.
ClockAlignment align_clocks(const Trace& trace, const AlignRequest& request = {});

// Do the stamps of ranks that are said to share one clock agree? Those whose offset cannot be 0, with that offset.
struct ClockDoubt {
  size_t part;
  int64_t offset_ns, half_ns;
};
std::vector<ClockDoubt> doubt_shared_clock(const ClockAlignment& alignment);

}  // namespace stageline
