// Parallel loops. The threads are kept from one loop to the next.
#pragma once

#include "base/vocabulary.h"

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

// For many small things, such as the cells of a run: stretches of them, each of one call.
inline constexpr size_t kStretch = size_t{1} << 16;

inline size_t stretch_count(size_t count) { return (count + kStretch - 1) / kStretch; }

// Calls body(stretch, begin, end) once for each stretch [begin, end) of [0, count), as parallel_for() calls its body.
// Stretches are numbered from 0 to stretch_count(count) − 1, the same for any number of threads.
template <class Body> void for_stretches(size_t count, const Body& body) {
  parallel_for(stretch_count(count),
               [&](size_t stretch) { body(stretch, stretch * kStretch, std::min(count, (stretch + 1) * kStretch)); });
}

}  // namespace stageline
