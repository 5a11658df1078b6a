// What a rank does before the first cell of its steps. Part of causes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diagnosis/causes/cause_drafts.h"

namespace stageline {

// A stretch of time on one rank, right before the first cell of a step.
struct BeforeStep {
  int64_t from_ns, to_ns;
};

// Drafts ranks that wait for nobody and begin their steps later than the same stage of other replicas, at most
// kMaxWorkerCauses of them. `cell_ns` is the time of the median compute cell; `cells` the number of cells that tell
// their delay. O(cells).
//
// A worker of `late` that begins its steps about as late as it starts everything else has no cause of its own here; the
// world without its late beginnings is returned, by worker.
std::map<uint32_t, CauseWorld> draft_late_begins(const CauseScene& scene, const LateWorkers& late, double cell_ns,
                                                 size_t cells, std::vector<CauseDraft>& out);

// A stretch of time on some rank, by its own clock.
struct RankWindow {
  int32_t part;
  int64_t from_ns, to_ns;
};
// The name of the recorded rows of kind "other" that fill at least half of these windows; "" where none do. O(cells log
// windows).
std::string name_that_fills(const Trace& trace, std::vector<RankWindow> windows);

// Says in `cause`, which is about one rank, that its pauses are before the first cells of steps, and what the rank did
// then, by the recorded rows of kind "other" that fill the pauses.
void name_what_comes_first(const CauseScene& scene, std::vector<BeforeStep> pauses, Cause& cause);

}  // namespace stageline
