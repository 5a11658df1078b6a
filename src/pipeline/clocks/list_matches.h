// Evidence that is listed match by match: there is little of it, or it has to be looked for in tables.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "pipeline/clocks/tie.h"

namespace stageline::align {

// Gaps along trace.links, of pairs of parts that are not `joined` already.
void add_gaps(const Trace& trace, const std::set<std::pair<size_t, size_t>>& joined, Matches& matches);

// Sends and receives whose ends, direction and number are recorded (the recorder's jobs): matched by these, whatever
// their order. Returns the pairs of parts that it tied; numbers that a side has twice in a step are left out.
std::set<std::pair<size_t, size_t>> add_numbered_messages(const Trace& trace, Matches& matches);

// Cells of kind C that end everywhere after they began everywhere (all-reduce, all-gather, reduce-scatter, all-to-all;
// not broadcast), by name and order within a step, over the replicas of a stage. Each rank is matched with the first
// replica and with the next one, so the work grows with the ranks and not with their square. Whether a name does span
// the replicas is for the fit to find out.
void add_cell_collectives(const Trace& trace, Matches& matches);

// The same of profiler traces: kernels with a collective's facts.
void add_profiler_collectives(const Trace& trace, Matches& matches);

// The k-th slice of the name, or cell of that label, on both ranks. A rank or name that is not there gives no tie.
void add_by_hand(const Trace& trace, const std::vector<ByHand>& by_hand, Matches& matches);

}  // namespace stageline::align
