// Computes how much memory there is to take, for limits that follow from it.
#pragma once

#include <cstdint>

namespace stageline {

// Bytes that this process may hold at most: the machine's, or what its user or its container (cgroup v2) allows of
// them.
int64_t machine_memory_bytes();

}  // namespace stageline
