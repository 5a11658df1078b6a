// Memory that was freed, and that the allocator keeps.
#pragma once

#include <cstddef>

namespace stageline {

inline constexpr size_t kMuchFreed = size_t{64} << 20;  // bytes

// Gives freed memory back to the system where the allocator keeps `at_least` bytes of it. What is freed in small pieces
// stays the process's otherwise, and larger blocks that are allocated after it do not fit into it: 600 MiB of the
// 4.2 GiB that `explain` took of ten thousand ranks. The kernel clears pages anew that are used again, so it is asked
// for before and after something large. Does nothing where the C library is not glibc. Thread-safe.
void return_freed_memory(size_t at_least = kMuchFreed);

}  // namespace stageline
