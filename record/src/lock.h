// Locks of the recorder that a signal handler or a forked child may meet, and bells to wait for.
//
// A thread that holds this lock is not interrupted by signals: they are blocked until release, so no handler can exit,
// fork or record in between. Synchronous signals (a fault, abort) cannot be blocked; `take` then fails for the thread
// that already holds the lock, and the caller continues without it. After fork, a lock held by the parent belongs to a
// thread that does not exist in the child, so it counts as free.
#pragma once

#include <signal.h>
#include <stdint.h>

#include <atomic>

namespace slr {

inline constexpr int64_t kForEver = INT64_MAX;

// Keeps the calling thread's signals off, but for those of faults, for as long as it lives.
class SignalsOff {
 public:
  SignalsOff();
  ~SignalsOff();
  SignalsOff(const SignalsOff&) = delete;

 private:
  sigset_t before_;
};

// A write beyond the process's limit of file sizes (ulimit -f) fails with EFBIG, without the signal that ends programs.
class LimitQuiet {
 public:
  LimitQuiet();
  ~LimitQuiet();
  LimitQuiet(const LimitQuiet&) = delete;

 private:
  sigset_t before_, limit_;
  bool was_pending_;
};

class Lock {
 public:
  // False: the calling thread has it, or another one had it for so long.
  bool take(int64_t patience_ns = kForEver);
  // By who has it, the last one taken first; also by the child of who has it.
  void give();

 private:
  std::atomic<uint64_t> owner_{0};  // process << 32 | thread; 0: free
  sigset_t before_{};               // the owner's signals
};

// A lock for the length of a block.
class Held {
 public:
  explicit Held(Lock& lock, int64_t patience_ns = kForEver) : lock_(lock.take(patience_ns) ? &lock : nullptr) {}
  ~Held() {
    if (lock_) lock_->give();
  }
  Held(const Held&) = delete;
  explicit operator bool() const { return lock_ != nullptr; }

 private:
  Lock* lock_;
};

// Wakes those who wait for something to change. Nothing is held while waiting: a handler may ring, wait or end there.
class Bell {
 public:
  // To be asked before what is waited for is looked at: what rings after that is not missed.
  uint32_t rung() const { return rung_.load(); }
  void ring();
  // Until it rings, at most so long, or a signal comes.
  void wait(uint32_t rung, int64_t ns);

 private:
  std::atomic<uint32_t> rung_{0};
};

}  // namespace slr
