// Measures the difference of two operation orders.
#pragma once

#include <cstddef>
#include <span>

#include "pipeline/order/rank_lists.h"

namespace stageline {

using SameToken = bool (*)(const WorkToken& a, const WorkToken& b);

// Returns true when both are forwards, or both are backwards, of the same work; B counts as I.
bool same_direction(const WorkToken& a, const WorkToken& b);
// Returns true when both have the same kind, and both or neither are fused.
bool same_work(const WorkToken& a, const WorkToken& b);

// Returns how many insertions, deletions and replacements turn one list into the other. The number is exact up to
// kExactDistance; above that it is an upper bound of at least kExactDistance + 1, from comparing position by position.
// O(n + d · (n + d)) with d ≤ kExactDistance, usually O(n + d²).
inline constexpr size_t kExactDistance = 96;
size_t edit_distance(std::span<const WorkToken> a, std::span<const WorkToken> b, SameToken same);

}  // namespace stageline
