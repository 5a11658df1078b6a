// Memory that was freed, and that the allocator keeps.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Gives freed memory back to the system. Does nothing where the C library is another than glibc. Thread-safe.
void return_freed_memory();

// Does the same around work on large data, where the allocator would keep much memory. Memory freed in small pieces is
// not returned to the system, and later large blocks do not fit into it. Example: 600 MiB of the 4.2 GiB that `explain`
// used for ten thousand ranks. The kernel clears returned pages before they are used again, so nothing is returned if
// `bytes`, the approximate memory of the work, is small.
void return_much_freed_memory(size_t bytes);

// Gives the pages between two places in a large array back before the array goes. Their content is lost.
void return_pages(void* begin, void* end);

}  // namespace stageline
