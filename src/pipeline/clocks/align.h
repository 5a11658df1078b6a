// Puts ranks on one clock: finds offset and drift of every rank's clock, with error bounds, from what ranks sent each
// other.
//
// The method is described in docs/reference/clocks.md and in the headers of this folder. In short: a message cannot
// arrive before it was sent, so every matched pair bounds the difference of two clocks. The convex hulls of those
// bounds give the lines (offset and drift) that are possible, and robust lines through the ends of messages give the
// likely ones. Shortest paths carry the bounds, and least squares the likely lines, over the graph of ranks.
//
// Prior art is Duda and others 1987 (hulls), Clément & Dagenais 2009, Poirier and others 2010, and Jabbarifar and
// others 2013/14 (tracing over networks). Newer is dPRO 2022 (send and receive as constraints, constant offsets). This
// adds pipeline messages and collectives, drift, clocks that are set in mid-run, and bounds that the user sees.
#pragma once

#include "pipeline/clocks/match.h"

namespace stageline {

struct ClockAlignment {
  std::vector<ClockMap> clocks;  // for each part; the reference is the first part's clock
  std::vector<size_t> untied;    // parts that nothing connects to the reference; `notes` says why
  int64_t match_count = 0;
  Diagnostics notes;  // notes such as `clock.aligned`, `clock.untied`, `clock.bad_match`, `clock.step`
};

// Returns the unit of the format's timestamps where that is larger than a microsecond; else 1.
int64_t stamp_unit_ns(const Trace& trace);

struct AlignRequest {
  std::vector<align::ByHand> by_hand;
  bool each_rank_alone = false;  // also where the source says that ranks share a clock, in order to check that
};

// Expects the trace as read (raw columns), with cells sorted and links drawn. Where the source names several machines,
// and does not say that every rank counts from its own zero, each machine has one clock; otherwise each rank has one.
// Where steps restart per rank, each step has its own offset and no drift. O(cells + matches), parallel over ties;
// deterministic.
ClockAlignment align_clocks(const Trace& trace, const AlignRequest& request = {});

// A rank that should share the others' clock and does not: its offset cannot be 0. The check returns all of these.
struct ClockDoubt {
  size_t part;
  int64_t offset_ns, half_ns;
};
std::vector<ClockDoubt> doubt_shared_clock(const ClockAlignment& alignment);

// Returns the rank whose clock this one was put on. Where segments differ in that, the rank is on none: −1.
int32_t reference_of(const ClockMap& map);

}  // namespace stageline
