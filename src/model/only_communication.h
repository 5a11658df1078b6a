// Whether a trace has communication and nothing else, as NCCL Inspector's logs do: nothing says what computing covers,
// or how long devices are idle.
#pragma once

#include <algorithm>

#include "model/trace.h"

namespace stageline {

// O(1) for other traces, mostly: the first slice of another kind decides.
inline bool is_only_communication(const Trace& trace) {
  return trace.slice_count() > 0 && std::ranges::all_of(trace.parts, [](const Part& part) {
    for (size_t i = 0; i < part.slices.size(); ++i)
      if (i >= part.slices.kernel_class.size() || part.slices.class_of(i) != KernelClass::kCommunication) return false;
    return true;
  });
}

}  // namespace stageline
