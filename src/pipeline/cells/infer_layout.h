// Infers which stage each rank is, where the source does not say it (Paddle's worker logs do not).
#pragma once

#include "model/trace.h"
#include "pipeline/cells/rank_layout.h"

namespace stageline {

// Fills stage and dp of every part where they are unknown, and says in Diagnostics how they were found:
//  1. options.pp > 0: the user gave it; ranks count dp-major, then stage, then tensor-parallel peers. If tp, dp
//     or an order is given too, every rank's place follows from its number (pipeline/cells/rank_layout.h).
//  2. From the order of work: the forwards before a rank's first backward fall from stage to stage
//     in 1F1B, Eager 1F1B, VPP and the zero-bubble schedules; equal neighbours are tensor-parallel
//     peers, a repeating pattern is data parallelism. A rank whose number is missing keeps its place: it is taken to
//     be what the ranks at the same place of other replicas are.
//  3. From time (FThenB): ranks whose first forward starts together are one stage.
//  4. Otherwise all ranks are taken as one pipeline in the order of their numbers. Returns false in this case, and when
//     there is a single rank without a known place.
bool infer_layout(Trace& trace, const RankLayoutOptions& options);

}  // namespace stageline
