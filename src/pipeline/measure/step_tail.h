// The work of a step before its pipeline's first cell and after the last one.
#pragma once

#include "pipeline/order/rank_lists.h"
#include "pipeline/sums/pipeline_sums.h"

namespace stageline {

// The parts of a step's time outside its pipeline. A moment belongs to the first of these that applies to it.
enum class TailPart : uint8_t {
  kReplicas,     // other replicas' pipelines still run
  kCollectives,  // some rank is in a collective: gathering parameters, exchanging gradients, and waiting for it
  kOptimizer,    // some rank of the replica runs the optimizer
  kOther,        // some rank does other recorded work
  kIdle,         // nothing was recorded
};
inline constexpr size_t kTailParts = 5;
std::string_view tail_part_name(TailPart part);

struct StepTail {
  ByEnum<TailPart, double, kTailParts> part_ns{};  // for each TailPart; together the step's span minus the pipeline's
  // The longest time of any rank from first start to last end of cells other than messages, on the rank's own clock.
  double longest_ns = 0;
};

// For lists [first, last) of one step and replica, whose compute cells span start_ns … end_ns on common time. O(cells
// of these ranks in the step), and O(k log k) for k of them outside the pipeline.
StepTail step_tail(const Trace& trace, const RankLists& lists, size_t first, size_t last, const StepSums& step,
                   int64_t start_ns, int64_t end_ns);

}  // namespace stageline
