// The shared part of the injection libraries of NVTX and mstx: when recording starts by itself, the lane of a range,
// its name.
//
//   nvtx / mstx callback ──name, domain──▶ lane ──▶ ranges.cc
//                                           │ default domain, at most two deep: torch's current stream (device times)
//                                           └ else: a lane of the thread and domain (the host's times)
//
// Nothing here calls NVTX or mstx, and nothing is recorded of a process that forked without STAGELINE_FORK=1.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "recorder.h"

namespace slr {

inline constexpr uint32_t kMaxDomains = 64;  // tags 1 … 63; further domains share the last

struct Domain {
  uint16_t tag;
  bool on_device;      // its ranges get device times: the default domain, and those that STAGELINE_NVTX_DOMAINS names
  uint32_t max_depth;  // of ranges that do
  char name[48];
  std::atomic<void*> theirs;  // the same domain of the tool behind this one
};

// Returns true when records are kept. The first call of a process begins a recording as the environment says; never a
// second one, so that what runs at exit begins none.
bool injection_is_on();

// The domain of a name, made when it is new; nullptr or "": the default one. Takes a lock.
Domain* domain_named(const char* name);
// A handle that a program gave back to us; anything that is not ours is the default domain.
Domain* domain_of(const void* handle);

slr_str name_of(const char* text);  // at most 1 000 bytes
slr_str name_of(const wchar_t* text);

// NVTX's rules: a push returns how many of its domain and thread were open, a pop the same of what it ended;
// −2 (nothing is tracked) where nothing is recorded.
int push_injected(Domain& domain, slr_str name);
int pop_injected(Domain& domain);
// The lane of a stream, kept by the thread that asks.
slr_lane lane_of_stream(uint8_t kind, void* stream, const char* name);
// 0 where nothing was begun. `lane` 0: where a push would go.
slr_range start_injected(Domain& domain, slr_str name, slr_lane lane);
void mark_injected(Domain& domain, slr_str name, slr_lane lane);

}  // namespace slr
