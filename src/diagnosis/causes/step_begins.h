// What a rank does before the first cell of its steps. Part of causes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diagnosis/causes/cause_drafts.h"

namespace stageline {

// Time on one rank, right before the first cell of a step of its.
struct BeforeStep {
  int64_t from_ns, to_ns;
};

// Ranks that wait for nobody and begin their steps later than the same stage of other replicas. `cell_ns`: the median
// compute cell; `cells`: how many cells tell their delay. At most kMostWorkerCauses of them. O(cells).
//
// A worker of `late` that begins its steps as late as it starts everything else is no cause of its own: its world is
// returned, by worker.
std::map<uint32_t, CauseWorld> draft_late_begins(const CauseScene& scene, const LateWorkers& late, double cell_ns,
                                                 size_t cells, std::vector<CauseDraft>& out);

// Time on some rank, by its own clock.
struct RankWindow {
  int32_t part;
  int64_t from_ns, to_ns;
};
// The name of the recorded rows of kind "other" that fill half of these windows, or more; "" where none do. O(cells log
// windows).
std::string name_that_fills(const Trace& trace, std::vector<RankWindow> windows);

// Says in `cause`, which is of one rank, that it stands before the first cells of steps, and what the rank did then, by
// the recorded rows of kind "other" that fill it.
void name_what_comes_first(const CauseScene& scene, std::vector<BeforeStep> pauses, Cause& cause);

}  // namespace stageline
