#include "base/freed_memory.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

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

void return_pages([[maybe_unused]] void* begin, [[maybe_unused]] void* end) {
#if defined(__linux__)
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t from = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
  const uintptr_t to = reinterpret_cast<uintptr_t>(end) / page * page;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
#endif
}

}  // namespace stageline
