// Adds evidence that is listed match by match, because there is little of it or it has to be looked up in tables.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "pipeline/clocks/tie.h"

namespace stageline::align {

// Adds gaps along trace.links, for pairs of parts that are not in `joined`.
void add_gaps(const Trace& trace, const std::set<std::pair<size_t, size_t>>& joined, Matches& matches);

// Adds sends and receives whose ends, direction and number are recorded (jobs of the recorder); they are matched by
// these, whatever their order. Numbers that a side has twice in a step are left out. Returns the pairs of parts that
// got matches.
std::set<std::pair<size_t, size_t>> add_numbered_messages(const Trace& trace, Matches& matches);

// Adds cells of kind C that end on every rank after they have begun on every rank (all-reduce, all-gather,
// reduce-scatter, all-to-all; not broadcast). They are matched by name and by order within a step, over the replicas of
// a stage. Each rank is matched with the first replica and with the next one, so the work grows with the number of
// ranks and not with its square. Whether a name really spans the replicas shows in the fit.
void add_cell_collectives(const Trace& trace, Matches& matches);

// Adds the same from profiler traces: kernels that have a collective's facts.
void add_profiler_collectives(const Trace& trace, Matches& matches);

// Adds what the user named: the k-th slice of the name, or cell of that label, on both ranks. A rank or name that does
// not exist adds nothing.
void add_by_hand(const Trace& trace, const std::vector<ByHand>& by_hand, Matches& matches);

}  // namespace stageline::align
