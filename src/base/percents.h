// Percentages of a whole that are printed next to each other.
#pragma once

#include <string>
#include <vector>

namespace stageline {

// Returns each share as percent() prints it, but so that the printed numbers add up to 100.0 where the shares add up
// to 1. The first one is rounded as usual, so that it agrees with sentences that print it, or the remainder, alone. The
// others with the largest remainders are rounded up. Each is off by less than 0.1 %. O(n log n). Example: 0.3333,
// 0.3333, 0.3334 → 33.3, 33.3, 33.4.
std::vector<std::string> percents(const std::vector<double>& shares);

}  // namespace stageline
