#include "inject/launch_calls.h"

#include <stdio.h>
#include <string.h>

#include "inject/device_times.h"
#include "inject/injected.h"

namespace slr::cupti {
namespace {

constexpr uint32_t kCalls = 1 << 16, kMaxThreads = 256, kCallNames = 2048;
enum CallState : uint8_t { kNone, kCalled, kWorked, kWritten };  // kWorked: its work was read before the call
struct Call {
  uint32_t correlation, thread;
  int64_t start_ns, end_ns;
  uint16_t id;
  bool driver;  // of the driver's interface, not the runtime's
  CallState state;
};
Call calls[kCalls];
struct ThreadLane {
  uint32_t thread;
  uint16_t lane;
};
ThreadLane threads[kMaxThreads];
uint32_t thread_count = 0;
slr_str call_names[2][kCallNames];

uint16_t lane_of_thread(uint32_t thread) {
  for (uint32_t i = 0; i < thread_count; ++i)
    if (threads[i].thread == thread) return threads[i].lane;
  if (thread_count == kMaxThreads) return threads[kMaxThreads - 1].lane;
  LaneEntry entry{};
  entry.device_kind = kLaunches;
  entry.device = -1;
  entry.thread_id = thread;
  snprintf(entry.name, sizeof entry.name, "thread %u", thread);
  threads[thread_count] = {thread, add_lane(entry, nullptr)};
  return threads[thread_count++].lane;
}

// "cudaLaunchKernel_v7000" → "cudaLaunchKernel".
slr_str name_of_call(const Functions& cupti, const Call& call) {
  slr_str& kept = call_names[call.driver][call.id % kCallNames];
  if (kept != 0 && call.id < kCallNames) return kept;
  const char* name_in_cupti = nullptr;
  if (!cupti.call_name ||
      cupti.call_name(call.driver ? kDriverDomain : kRuntimeDomain, call.id, &name_in_cupti) != kSuccess)
    name_in_cupti = nullptr;
  char name[128];
  snprintf(name, sizeof name, "%s", name_in_cupti ? name_in_cupti : call.driver ? "cuLaunch" : "cudaLaunch");
  char* version = strstr(name, "_v");
  if (version && version[2 + strspn(version + 2, "0123456789")] == '\0') *version = '\0';
  return kept = name_of(name);
}

void write_call(const Functions& cupti, Call& call) {
  call.state = kWritten;
  DoneRange range{};
  range.lane = lane_of_thread(call.thread);
  range.name = name_of_call(cupti, call);
  range.bytes = -1;
  range.sequence = call.correlation;
  record_range(range, call.start_ns, call.end_ns);
}

}  // namespace

void take_call(const Functions& cupti, const uint8_t* record, bool driver) {
  const auto correlation = field<uint32_t>(record, kCallCorrelationAt);
  const auto start = field<int64_t>(record, kCallStartAt), end = field<int64_t>(record, kCallEndAt);
  Call& call = calls[correlation & (kCalls - 1)];
  const bool is_known = call.state != kNone && call.correlation == correlation;
  if (start <= 0 || end < start || (is_known && call.state == kWritten)) return;
  // The runtime's call and the driver's call within it have one number. People know the outer one.
  if (is_known && call.state == kCalled && call.start_ns <= start) return;
  const bool worked = is_known && call.state == kWorked;
  call = {correlation,
          field<uint32_t>(record, kCallThreadAt),
          start,
          end,
          static_cast<uint16_t>(field<uint32_t>(record, kCallIdAt)),
          driver,
          kCalled};
  if (worked) write_call(cupti, call);
}

void note_work(const Functions& cupti, uint32_t correlation) {
  Call& call = calls[correlation & (kCalls - 1)];
  if (call.state == kNone || call.correlation != correlation) call = {correlation, 0, 0, 0, 0, false, kWorked};
  else if (call.state == kCalled) write_call(cupti, call);
}

}  // namespace slr::cupti
