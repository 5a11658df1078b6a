// Finds links whose cell begins before the cell it waits for has ended. Either clocks disagree, or cells have wrong
// labels.
#pragma once

#include <cstdint>

#include "model/trace.h"

namespace stageline {

struct EarlyLinks {
  int64_t count = 0, worst_ns = 0;  // how many links are early by more than was asked, and by how much the worst one is
  const Link* first = nullptr;      // the first of them in Trace::links; nullptr when there is none
};

// Compares common times. O(links), in parallel.
EarlyLinks early_links(const Trace& trace, int64_t beyond_ns);

}  // namespace stageline
