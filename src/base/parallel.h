// Parallel loops. One function, so that the back end is one decision: oneTBB, or std::thread in
// builds under ThreadSanitizer (Debian's TBB is not instrumented). See docs/decisions/.
#pragma once

#include <cstddef>
#include <functional>

namespace stageline {

// Worker threads in use; at least 1. set_thread_count(0) restores the machine's own number.
int thread_count();
void set_thread_count(int count);

// Calls body(i) once for every i in [0, count), possibly at the same time from several threads.
// Returns when all calls have. The order of calls is unspecified: a body writes only to places
// of its own index, and the caller combines them in index order, so results never depend on the
// number of threads.
void parallel_for(size_t count, const std::function<void(size_t)>& body);

}  // namespace stageline
