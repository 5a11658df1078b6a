// Where a step's time goes, without comparing clocks (the idea of StageFrontier, 2026).
//
// Every rank goes through the same phases. Its progress is measured on its own clock, from its own first cell:
//
//     rank 0  ├ before ┼ warm-up ───────┼ steady ───┼ cool-down ──────┼ after ┤
//     rank 1  ├ before ┼ warm-up ┼ steady ────┼ cool-down ┼ after ────────────┤
//
// The frontier at the end of a phase is the longest of these times over the ranks. It never falls, and its growth in a
// phase is the time exposed in that phase. The five together are the longest time that any rank spends in the step.
// Waiting is included; the replays of pipeline/measure/waterfall.h find its cause.
#pragma once

#include "model/trace.h"

namespace stageline {

enum class FrontierPhase : uint8_t { kBefore, kWarmUp, kSteady, kCoolDown, kAfter };
inline constexpr size_t kFrontierPhases = 5;
std::string_view frontier_phase_name(FrontierPhase phase);  // "before", "warm-up", …

struct FrontierSum {
  double exposed_ns = 0;     // mean over pipelines of what the phase adds to the frontier
  int32_t stage = kUnknown;  // the stage that is the frontier in most pipelines; of equally frequent ones the first
  double stage_share = 0;    // share of the pipelines in which `stage` is the frontier
};

struct Frontier {
  ByEnum<FrontierPhase, FrontierSum, kFrontierPhases> phases;
  int64_t pipelines = 0;  // number of (step, replica) that have phases
};

// Message cells are ignored. Steps in `without` (ascending), ranks without forwards or backwards and ranks whose stage
// is unknown are left out. Expects sorted cells. O(cells).
Frontier frontier_of(const Trace& trace, const std::vector<int32_t>& without);

}  // namespace stageline
