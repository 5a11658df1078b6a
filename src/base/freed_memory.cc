#include "base/freed_memory.h"

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

namespace stageline {

void return_freed_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

void return_much_freed_memory([[maybe_unused]] size_t bytes) {
#if defined(__GLIBC__)
  constexpr size_t kMuch = size_t{64} << 20;
  // Asking the allocator takes the longer the more free blocks it has, so it is asked for something large alone.
  if (bytes < kMuch) return;
#if __GLIBC_PREREQ(2, 33)
  const size_t freed = mallinfo2().fordblks;
#else
  const size_t freed = static_cast<unsigned>(mallinfo().fordblks);  // wraps at 4 GiB
#endif
  if (freed >= kMuch) malloc_trim(0);
#endif
}

}  // namespace stageline
