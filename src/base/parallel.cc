#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#ifndef STAGELINE_STD_THREADS
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#endif

namespace stageline {
namespace {

std::atomic<int> g_thread_count{0};

}  // namespace

int thread_count() {
  const int asked = g_thread_count.load();
  return asked > 0 ? asked : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void set_thread_count(int count) { g_thread_count = std::max(0, count); }

void parallel_for(size_t count, const std::function<void(size_t)>& body) {
  const size_t workers = std::min<size_t>(count, static_cast<size_t>(thread_count()));
  if (workers <= 1) {
    for (size_t i = 0; i < count; ++i) body(i);
    return;
  }
#ifdef STAGELINE_STD_THREADS
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::thread> threads;
  for (size_t w = 1; w < workers; ++w) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
#else
  tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
  tbb::parallel_for(size_t{0}, count, [&](size_t i) { body(i); });
#endif
}

}  // namespace stageline
