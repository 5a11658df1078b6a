#include "base/freed_memory.h"

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

namespace stageline {

void return_freed_memory(size_t at_least) {
#if defined(__GLIBC__)
  if (mallinfo2().fordblks >= at_least) malloc_trim(0);
#else
  (void)at_least;
#endif
}

}  // namespace stageline
