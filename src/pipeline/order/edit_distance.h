// How far two lists of work are apart.
#pragma once

#include <cstddef>
#include <span>

#include "pipeline/order/rank_lists.h"

namespace stageline {

// Equal as forwards and backwards: B counts as I.
bool same_direction(const WorkToken& a, const WorkToken& b);
// Equal in kind, and both or neither fused.
bool same_work(const WorkToken& a, const WorkToken& b);

// Insertions, deletions and replacements that make one list of the other. Exact up to kExactDistance; above, an upper
// bound: place by place, at least kExactDistance + 1. O(n + d · (n + d)) with d ≤ kExactDistance, usually O(n + d²).
inline constexpr size_t kExactDistance = 96;
size_t edit_distance(std::span<const WorkToken> a, std::span<const WorkToken> b,
                     bool (*same)(const WorkToken&, const WorkToken&));

}  // namespace stageline
