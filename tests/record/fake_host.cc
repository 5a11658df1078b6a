// A host of our choosing: its name and its clocks, which the recorder asks libc for.
#include "fake_host.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <initializer_list>

namespace {

std::atomic<int64_t> ahead_ns{0}, passed_ns{-1};  // passed since time was stopped; −1: it was not
constexpr int64_t kReadingNs = 25;
timespec stopped_at[3];
char host[64] = "";
thread_local void (*at_reading)() = nullptr;

}  // namespace

void set_wall_clock_ahead(int64_t ns) { ahead_ns = ns; }
void set_host_name(const char* name) { strncpy(host, name, sizeof host - 1); }

void stop_time() {
  for (const clockid_t id : {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW})
    clock_gettime(id, &stopped_at[id == CLOCK_MONOTONIC_RAW ? 2 : id]);
  passed_ns = 0;
}
void advance_time(int64_t ns) { passed_ns += ns; }
void at_next_reading(void (*what)()) { at_reading = what; }

extern "C" int clock_gettime(clockid_t id, timespec* t) noexcept {
  if (void (*const what)() = at_reading; what) {
    at_reading = nullptr;
    what();
  }
  const bool known = id == CLOCK_REALTIME || id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_RAW;
  int64_t ns = id == CLOCK_REALTIME ? ahead_ns.load() : 0;
  if (known && passed_ns.load(std::memory_order_relaxed) >= 0) {
    *t = stopped_at[id == CLOCK_MONOTONIC_RAW ? 2 : id];
    ns += passed_ns.fetch_add(kReadingNs);
  } else if (const long result = syscall(SYS_clock_gettime, id, t); result != 0) {
    return static_cast<int>(result);
  }
  ns += t->tv_nsec;
  const int64_t seconds = ns >= 0 ? ns / 1'000'000'000 : -((999'999'999 - ns) / 1'000'000'000);
  t->tv_sec += seconds;
  t->tv_nsec = ns - seconds * 1'000'000'000;
  return 0;
}

extern "C" int gethostname(char* name, size_t size) noexcept {
  if (size == 0) return -1;
  strncpy(name, *host ? host : "testhost", size - 1);
  name[size - 1] = '\0';
  return 0;
}
