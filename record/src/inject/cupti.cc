// Records kernels, copies and fills of the device from CUPTI: CUDA_INJECTION64_PATH=libstageline_record.so makes the
// driver call InitializeInjection at cuInit.
//
//   cuInit ──▶ InitializeInjection ──▶ the tool that the variable named before (STAGELINE_CHAIN_CUDA), if any
//                    └▶ thread slr-kernels:  steps that are recorded? ── no ──▶ nothing of CUPTI is called
//                                              └ yes ──▶ enable, take buffers every 50 ms ──▶ time is up: disable
//
// Recording is always bounded: STAGELINE_KERNELS_S seconds in all, STAGELINE_KERNELS_MAX kernels. CUPTI has one
// subscriber in a process: an earlier one keeps it, and while the recorder is the subscriber torch.profiler is refused;
// afterwards it is free. Its clock is set once, by itself: it stays CLOCK_REALTIME's. CUPTI is looked for in the
// process first, and no header of it is needed. META records the result.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <initializer_list>

#include "clock.h"
#include "inject/behind.h"
#include "inject/device_times.h"
#include "inject/injected.h"
#include "inject/kernels.h"

extern "C" SLR_API int InitializeInjection(void);

namespace slr::cupti {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr double kDefaultSeconds = 10, kMaxSeconds = 3600;
constexpr double kDefaultKernels = 1e6, kMaxKernels = 1e9;

Functions cupti;
Subscriber subscriber;
pthread_t thread;
pid_t process;
std::atomic<bool> ending{false}, ended{false};

double number_known(const char* variable, double fallback, double most) {
  const char* text = getenv(variable);
  char* end = nullptr;
  const double value = text && *text ? strtod(text, &end) : fallback;
  return end == text || !(value >= 0) ? fallback : value > most ? most : value;
}

void* find_library() {
  const char* said = getenv("STAGELINE_CUPTI");
  if (said && *said) return dlopen(said, RTLD_NOW | RTLD_LOCAL);
  constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"};
  for (const int loaded : {RTLD_NOLOAD, 0})
    for (const char* name : kNames)
      if (void* found = dlopen(name, RTLD_NOW | RTLD_LOCAL | loaded)) return found;
  for (const char* path : {"/usr/local/cuda/lib64/libcupti.so", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"})
    if (void* found = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return found;
  return nullptr;
}

bool find_functions() {
  void* library = find_library();
  if (!library) return false;
  const auto find = [&](const char* name, auto& to) {
    to = reinterpret_cast<std::decay_t<decltype(to)>>(dlsym(library, name));
    return to != nullptr;
  };
  find("cuptiActivityGetNumDroppedRecords", cupti.dropped);
  find("cuptiSetThreadIdType", cupti.set_thread_id);
  find("cuptiGetCallbackName", cupti.call_name);
  return find("cuptiSubscribe", cupti.subscribe) && find("cuptiUnsubscribe", cupti.unsubscribe) &&
         find("cuptiActivityRegisterCallbacks", cupti.register_callbacks) &&
         find("cuptiActivityEnable", cupti.enable) && find("cuptiActivityDisable", cupti.disable) &&
         find("cuptiActivityFlushAll", cupti.flush_all) && find("cuptiActivityGetNextRecord", cupti.next_record);
}

void no_callback(void*, uint32_t, uint32_t, const void*) {}

// Returns nullptr, or the reason why not.
const char* begin_session() {
  if (!find_functions()) return "CUPTI is not there";
  if (const int error = cupti.subscribe(&subscriber, no_callback, nullptr))
    return error == kMultipleSubscribers ? "another tool uses CUPTI" : "CUPTI refused";
  if (cupti.register_callbacks(request_buffer, complete_buffer) == kSuccess &&
      cupti.enable(kConcurrentKernel) == kSuccess) {
    for (const uint32_t kind : {kMemcpy, kMemset}) cupti.enable(kind);  // kernels are worth it without them
    const char* launches = getenv("STAGELINE_LAUNCHES");
    if (!launches || strcmp(launches, "0") != 0) {
      if (cupti.set_thread_id) cupti.set_thread_id(kThreadIdOfSystem);
      for (const uint32_t kind : {kRuntime, kDriver}) cupti.enable(kind);
    }
    return nullptr;
  }
  cupti.unsubscribe(subscriber);
  return "CUPTI refused";
}

void take_what_is_there(bool all, uint64_t& kernels) {
  cupti.flush_all(all ? kFlushForced : 0);
  read_clocks();
  const Taken taken = take_buffers(cupti);
  kernels += taken.kernels;
  if (taken.lost > 0) drop(SLR_DROP_KERNELS, taken.lost);
}

void end_session(uint64_t& kernels) {
  for (const uint32_t kind : {kConcurrentKernel, kMemcpy, kMemset, kRuntime, kDriver}) cupti.disable(kind);
  take_what_is_there(true, kernels);
  cupti.unsubscribe(subscriber);
}

// Steps are recorded now. Before a recording has begun: all steps are asked for, and the first kernels begin it.
bool is_wanted() {
  if (is_on()) return state.live.load(std::memory_order_relaxed) != 0;
  const char* steps = getenv("STAGELINE_STEPS");
  return state.recording == 0 && (!steps || !*steps);
}

void record_kernels() {
  const auto max_ns = static_cast<int64_t>(number_known("STAGELINE_KERNELS_S", kDefaultSeconds, kMaxSeconds) * 1e9);
  const auto most = static_cast<uint64_t>(number_known("STAGELINE_KERNELS_MAX", kDefaultKernels, kMaxKernels));
  const timespec nap = {0, 50 * kMs};
  uint64_t kernels = 0;
  int64_t spent_ns = 0, last_ns = 0;
  bool in_session = false, begun = false;
  for (;;) {
    const bool last = ending.load();
    const int64_t now = clock_ns(CLOCK_MONOTONIC);
    if (in_session && kernels > 0) spent_ns += now - last_ns;
    last_ns = now;
    const char* reason = spent_ns >= max_ns ? "STAGELINE_KERNELS_S is over"
                         : kernels >= most  ? "STAGELINE_KERNELS_MAX is reached"
                                            : nullptr;
    if (!reason && is_wanted() != in_session) {
      if (in_session) end_session(kernels);
      else reason = begin_session();
      in_session = !in_session && !reason;
      begun |= in_session;
    } else if (in_session) {
      reason ? end_session(kernels) : take_what_is_there(false, kernels);
      in_session = !reason;
    }
    if (reason) return say_of_kernels(reason);
    if (last) break;
    nanosleep(&nap, nullptr);
  }
  if (in_session) end_session(kernels);
  if (!begun) say_of_kernels("the process ended before CUPTI was asked");
}

void* thread_body(void*) {
  prctl(PR_SET_NAME, "slr-kernels");
  setpriority(PRIO_PROCESS, 0, 5);
  record_kernels();
  ended.store(true, std::memory_order_release);
  return nullptr;
}

// Runs before a recording is closed: records that CUPTI still holds belong into it, and may start one. It takes at most
// two seconds.
void finish() {
  if (getpid() != process) return;  // a child, which has no such thread
  ending.store(true);
  const timespec nap = {0, kMs};
  for (int i = 0; i < 2000 && !ended.load(std::memory_order_acquire); ++i) nanosleep(&nap, nullptr);
  if (!ended.load(std::memory_order_acquire)) say_of_kernels("the last ones could not be read in time");
}

void start_thread() {
  process = getpid();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  say_of_kernels("");  // before the thread is there, which may have more to say at once
  if (pthread_create(&thread, nullptr, thread_body, nullptr) == 0) {
    pthread_detach(thread);
    before_shutdown.store(finish);
  } else {
    say_of_kernels("no thread could be started");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace slr::cupti

int InitializeInjection(void) {
  static std::atomic<bool> begun{false};
  const int saved_errno = errno;
  if (!begun.exchange(true)) {
    const auto next = slr::find_behind("STAGELINE_CHAIN_CUDA", "InitializeInjection", InitializeInjection);
    if (next) next();
    slr::cupti::start_thread();
    atexit(slr::cupti::finish);  // of a program so short that nothing was flushed yet
  }
  errno = saved_errno;
  return 1;
}
