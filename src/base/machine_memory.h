// Computes how much memory there is to take, for limits that follow from it.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Bytes that this process may hold at most: the machine's, or what its user or its container (cgroup v2) allows of
// them.
int64_t machine_memory_bytes();

// Bytes that this process holds now.
int64_t resident_bytes();
// --max-memory: how much this process may hold while it reads; 0 when it was not given.
void set_max_memory(int64_t bytes);
int64_t max_memory();

}  // namespace stageline
