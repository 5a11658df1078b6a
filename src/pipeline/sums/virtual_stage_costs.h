// The mean times of a pipeline's virtual stages, which the planner and what-if start from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stageline {

// The mean time of one micro-batch on a virtual stage, for each direction: forward, backward (B or I), weight gradient.
inline constexpr size_t kDirections = 3;
using DirectionCost = std::array<double, kDirections>;

// A pipeline as its virtual stages, in the order in which a micro-batch passes through them.
struct StageCosts {
  std::vector<DirectionCost> cost_ns;  // for each virtual stage
  std::vector<int32_t> owner;          // for each virtual stage the rank that holds it
};

}  // namespace stageline
