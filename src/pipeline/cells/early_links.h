// Links whose cell begins before what it waits for has ended: clocks that disagree, or cells under a wrong label.
#pragma once

#include <cstdint>

#include "model/trace.h"

namespace stageline {

struct EarlyLinks {
  int64_t count = 0, worst_ns = 0;  // those that are early by more than asked; by how much at most
  const Link* first = nullptr;      // of Trace::links; nullptr: none
};

// On common time. O(links), in parallel.
EarlyLinks early_links(const Trace& trace, int64_t beyond_ns);

}  // namespace stageline
