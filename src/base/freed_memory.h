// Memory that was freed, and that the allocator keeps.
#pragma once

#include <cstddef>

namespace stageline {

// Gives freed memory back to the system. Does nothing where the C library is another than glibc.
// Thread-safe.
void return_freed_memory();

// The same around work on something large, where the allocator keeps much. What is freed in small pieces stays the
// process's otherwise, and larger blocks that are allocated after it do not fit into it: 600 MiB of the 4.2 GiB that
// `explain` took of ten thousand ranks. The kernel clears pages anew that are used again, so it is not asked where
// `bytes`, about what the work takes, are few.
void return_much_freed_memory(size_t bytes);

}  // namespace stageline
