// A parallel loop over many small things, such as the cells of a run: stretches of them, each of one call.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/parallel.h"

namespace stageline {

inline constexpr size_t kStretch = size_t{1} << 16;

inline size_t stretch_count(size_t count) { return (count + kStretch - 1) / kStretch; }

// Calls body(stretch, begin, end) once for each stretch [begin, end) of [0, count), as parallel_for() calls its body.
// Stretches are numbered from 0 to stretch_count(count) − 1, the same for any number of threads.
template <class Body>
void for_stretches(size_t count, const Body& body) {
  parallel_for(stretch_count(count),
               [&](size_t stretch) { body(stretch, stretch * kStretch, std::min(count, (stretch + 1) * kStretch)); });
}

}  // namespace stageline
