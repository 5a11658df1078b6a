// Parallel loops. The threads are kept from one loop to the next.
#pragma once

#include <cstddef>
#include <functional>

namespace stageline {

// The number of worker threads, at least 1. set_thread_count(0) restores the machine's own number.
int thread_count();
void set_thread_count(int count);

// Calls body(i) once for every i in [0, count), possibly at the same time from several threads, and returns when all
// calls have returned. The order of calls is unspecified. Each call must write only to places of its own index, and the
// caller combines them in index order, so results never depend on the number of threads. While it waits, the calling
// thread does not work for other loops, so it may hold a lock that such work needs. An exception of a body is thrown
// again here, once no body runs any more.
void parallel_for(size_t count, const std::function<void(size_t)>& body);

}  // namespace stageline
