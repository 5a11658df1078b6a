#include "lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "clock.h"

namespace slr {
namespace {

void keep_signals_off(sigset_t* before) {
  sigset_t all;
  sigfillset(&all);
  // A fault that is kept off ends the program without asking its handler.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, before);
}

uint64_t this_owner() { return static_cast<uint64_t>(getpid()) << 32 | static_cast<uint32_t>(syscall(SYS_gettid)); }

}  // namespace

SignalsOff::SignalsOff() { keep_signals_off(&before_); }
SignalsOff::~SignalsOff() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

LimitQuiet::LimitQuiet() {
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
  sigemptyset(&limit_);
  sigaddset(&limit_, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &limit_, &before_);
}
LimitQuiet::~LimitQuiet() {
  const int saved_errno = errno;
  const timespec none = {0, 0};
  if (!was_pending_) sigtimedwait(&limit_, nullptr, &none);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = saved_errno;
}

bool Lock::take(int64_t patience_ns) {
  constexpr int kYields = 64, kShortNaps = 32;
  constexpr int64_t kShortNs = 50'000, kLongNs = 1'000'000;
  const int saved_errno = errno;
  sigset_t before;
  keep_signals_off(&before);
  const uint64_t self = this_owner();
  int64_t since_ns = 0;  // it waits
  bool taken = false;
  for (int tries = 0;; ++tries) {
    uint64_t owner = owner_.load(std::memory_order_relaxed);
    const bool is_free = owner == 0 || owner >> 32 != self >> 32;
    if (is_free && owner_.compare_exchange_strong(owner, self, std::memory_order_acquire)) {
      taken = true;
      break;
    }
    if (owner == self) break;
    const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (since_ns == 0) since_ns = now_ns;
    if (now_ns - since_ns >= patience_ns) break;
    if (tries < kYields) {
      sched_yield();
      continue;
    }
    const timespec nap = {0, tries < kYields + kShortNaps ? kShortNs : kLongNs};
    nanosleep(&nap, nullptr);
  }
  if (taken) before_ = before;
  else pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = saved_errno;
  return taken;
}

void Lock::give() {
  const sigset_t before = before_;
  owner_.store(0, std::memory_order_release);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Bell::ring() {
  rung_.fetch_add(1);
  syscall(SYS_futex, &rung_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Bell::wait(uint32_t rung, int64_t ns) {
  if (ns <= 0) return;
  const timespec most = {ns / 1'000'000'000, ns % 1'000'000'000};
  syscall(SYS_futex, &rung_, FUTEX_WAIT_PRIVATE, rung, &most, nullptr, 0);
}

}  // namespace slr
