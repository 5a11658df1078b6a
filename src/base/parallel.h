// Parallel loops, on threads that are kept from one loop to the next.
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
// number of threads. While it waits, the calling thread takes up no work of other loops, so it may hold a lock that
// such work wants. What a body throws is thrown again here, once no body runs any more.
void parallel_for(size_t count, const std::function<void(size_t)>& body);

}  // namespace stageline
