// Where a step's time goes, without comparing clocks (the idea of StageFrontier, 2026).
//
// Every rank walks through the same phases, and how far it has come is told on its own clock, from its own first cell:
//
//     rank 0  ├ before ┼ warm-up ───────┼ steady ───┼ cool-down ──────┼ after ┤
//     rank 1  ├ before ┼ warm-up ┼ steady ────┼ cool-down ┼ after ────────────┤
//
// The frontier at the end of a phase is the longest of these times over the ranks. It only grows, and what it grows by
// in a phase is exposed there: the sum is the longest that any rank has of the step. Waiting is in it; whose it is, the
// replays of pipeline/measure/waterfall.h say.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace stageline {

enum class FrontierPhase : uint8_t { kBefore, kWarmUp, kSteady, kCoolDown, kAfter };
inline constexpr size_t kFrontierPhases = 5;
std::string_view frontier_phase_name(FrontierPhase phase);  // "before", "warm-up", …

struct FrontierSum {
  double exposed_ns = 0;     // mean over pipelines: what the frontier grows by
  int32_t stage = kUnknown;  // the one that is the frontier most often; of equally frequent ones the first
  double stage_share = 0;    // of the pipelines
};

struct Frontier {
  std::array<FrontierSum, kFrontierPhases> phases;
  int64_t pipelines = 0;  // (step, replica) with phases
};

// Messages do not count. Steps in `without` (ascending), ranks without forwards or backwards and ranks whose stage is
// unknown are left out. Expects sorted cells. O(cells).
Frontier frontier_of(const Trace& trace, const std::vector<int32_t>& without);

}  // namespace stageline
