// A program under CUPTI's injection, with a CUPTI that has what the test orders.
#pragma once

#include <time.h>

#include <filesystem>

#include "fake_cupti.h"
#include "inject_client.h"
#include "record_fixture.h"

inline constexpr const char* kFakeCupti = STAGELINE_FAKE_FOLDER "/libcupti.so";

inline int64_t realtime_ns() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// A program whose driver has just called cuInit.
struct Cupti {
  void* library;
  FakeCupti* fake;
  void (*kernel)(const char*, int64_t, int64_t, uint32_t, uint32_t);
  void (*copy)(uint8_t, int64_t, int64_t, int64_t, uint32_t);
  void (*call)(bool, uint32_t, uint32_t, uint32_t, int64_t, int64_t);

  Cupti() : library(dlopen(kFakeCupti, RTLD_NOW)) {
    if (!library) _exit(99);
    fake = reinterpret_cast<FakeCupti* (*)()>(dlsym(library, "fake_cupti"))();
    kernel = reinterpret_cast<decltype(kernel)>(dlsym(library, "fake_cupti_kernel"));
    copy = reinterpret_cast<decltype(copy)>(dlsym(library, "fake_cupti_copy"));
    call = reinterpret_cast<decltype(call)>(dlsym(library, "fake_cupti_call"));
  }
  void run(const char* name, int64_t dur_ns, uint32_t stream = 7) const {
    const int64_t now = realtime_ns();
    kernel(name, now - dur_ns, now, 0, stream);
  }
};
inline bool wait_for(const std::function<bool()>& done) {
  for (int i = 0; i < 60'000; ++i) {
    if (done()) return true;
    usleep(1000);
  }
  return false;
}

inline ptrdiff_t threads() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
}

inline int with_kernels(const RecordFolder& folder, const std::function<int(InjectedLibrary&, Cupti&)>& body) {
  return in_child([&] {
    setenv("STAGELINE_DIR", folder.path().c_str(), 1);
    setenv("RANK", "2", 1);
    setenv("STAGELINE_CUPTI", kFakeCupti, 1);
    InjectedLibrary library;
    Cupti cupti;
    const int result = body(library, cupti);
    library.shutdown();
    return result;
  });
}
inline int inject(const InjectedLibrary& library) {
  int (*initialize)() = nullptr;
  library.find("InitializeInjection", initialize);
  return initialize();
}
inline bool is_enabled(const Cupti& cupti) {  // kernels, copies, fills, both kinds of calls
  return wait_for([&] { return cupti.fake->enables >= 5; });
}
