// What a step does before its pipeline's first cell and after the last one.
#pragma once

#include <array>

#include "pipeline/rank_lists.h"
#include "pipeline/waterfall.h"

namespace stageline {

struct StepTail {
  std::array<double, kTailParts> part_ns{};  // by TailPart; add up to the step's span minus the pipeline's
  double longest_ns = 0;  // of its ranks, each on its own clock: first start to last end of all cells but messages
};

// Of lists [first, last), one step and replica, whose compute cells span start_ns … end_ns on common time. O(cells of
// these ranks in the step), O(k log k) for k of them outside the pipeline.
StepTail step_tail(const Trace& trace, const RankLists& lists, size_t first, size_t last, const StepSums& step,
                   int64_t start_ns, int64_t end_ns);

}  // namespace stageline
