// Progress: bytes done, bytes expected, and events read; any thread may add to it. Others draw it. A thread that waits
// for a read may also cancel it: Input checks this before each read, so reading stops after at most one more window.
#pragma once

#include <atomic>

#include "base/vocabulary.h"

namespace stageline {

class Progress {
 public:
  void expect(int64_t bytes) { expected_.fetch_add(bytes, std::memory_order_relaxed); }
  void add(int64_t bytes) { done_.fetch_add(bytes, std::memory_order_relaxed); }
  void add_events(int64_t count) { events_.fetch_add(count, std::memory_order_relaxed); }
  int64_t done_bytes() const { return done_.load(std::memory_order_relaxed); }
  // Returns 0 when the size is not known, as for a pipe.
  int64_t expected_bytes() const { return expected_.load(std::memory_order_relaxed); }
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // Returns 0 for readers that do not count events while they read.
  int64_t events() const { return events_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> events_{0};
  std::atomic<int64_t> expected_{0};
  std::atomic<bool> cancelled_{false};
};

}  // namespace stageline
