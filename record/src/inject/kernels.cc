#include "inject/kernels.h"

#include <cxxabi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <initializer_list>

#include "clock.h"
#include "inject/injected.h"

namespace slr::cupti {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr uint32_t kBuffers = 32, kPoints = 64, kMaxStreams = 256, kNamesKept = 1 << 12;
constexpr int64_t kMinApartNs = 10'000'000;  // between readings: long compared with the time of one
constexpr int kMaxWaits = 2000;              // of a millisecond each, for the writer

enum BufferState : uint32_t { kFree, kTheirs, kBack };
struct Buffer {
  std::atomic<uint32_t> state;
  uint8_t* bytes;
  size_t valid;
  void* context;
  uint32_t stream;
};
Buffer buffers[kBuffers];

// Pairs of the two clocks, the last kPoints of them in order of time.
struct Point {
  int64_t realtime_ns;
  uint64_t ticks;
};
Point points[kPoints];
uint64_t point_count = 0;
uint32_t points_of = 0;     // which recording
double nominal_per_ns = 1;  // kept: the recording may end while its last kernels are read
int64_t last_raw_ns = 0;

struct StreamLane {
  uint32_t device, context, stream;
  uint16_t lane;
};
StreamLane streams[kMaxStreams];
uint32_t stream_count = 0, last_stream = 0;

struct KnownName {
  uint64_t hash;
  slr_str name;
};
KnownName known[kNamesKept];

template <class T>
T field(const uint8_t* record, size_t at) {
  T value;
  memcpy(&value, record + at, sizeof value);
  return value;
}

uint16_t lane_of(uint32_t device, uint32_t context, uint32_t stream) {
  const auto is = [&](const StreamLane& s) { return s.device == device && s.context == context && s.stream == stream; };
  if (last_stream < stream_count && is(streams[last_stream])) return streams[last_stream].lane;
  for (uint32_t i = 0; i < stream_count; ++i)
    if (is(streams[i])) return streams[last_stream = i].lane;
  if (stream_count == kMaxStreams) return streams[kMaxStreams - 1].lane;
  LaneEntry entry{};
  entry.device_kind = kKernels;
  entry.device = static_cast<int16_t>(device <= INT16_MAX ? device : INT16_MAX);
  entry.thread_id = context;
  entry.stream_id = stream;
  snprintf(entry.name, sizeof entry.name, "GPU %u stream %u", device, stream);
  streams[stream_count] = {device, context, stream, add_lane(entry, nullptr)};
  return streams[last_stream = stream_count++].lane;
}

// As people write it, "void gemm<float>(…)", once for each mangled name.
slr_str name_of_kernel(const char* mangled) {
  if (!mangled) return 0;
  uint64_t hash = 0xcbf29ce484222325;
  size_t size = 0;
  for (; mangled[size] && size < 4096; ++size) hash = (hash ^ static_cast<uint8_t>(mangled[size])) * 0x100000001b3;
  hash |= 1;  // 0: no owner
  KnownName& place = known[hash >> 20 & (kNamesKept - 1)];
  if (place.hash == hash) return place.name;
  int failed = -1;
  char* plain = strncmp(mangled, "_Z", 2) == 0 ? abi::__cxa_demangle(mangled, nullptr, nullptr, &failed) : nullptr;
  place = {hash, failed == 0 && plain ? name_of(plain) : name_of(mangled)};
  free(plain);
  return place.name;
}

slr_str name_of_copy(uint8_t kind) {
  static const char* const kNames[] = {"Memcpy",      "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA",
                                       "Memcpy AtoH", "Memcpy AtoA", "Memcpy AtoD", "Memcpy DtoA",
                                       "Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP"};
  return name_of(kNames[kind < sizeof kNames / sizeof kNames[0] ? kind : 0]);
}

// On the line between the two readings around it; before the first and behind the last on their line.
uint64_t ticks_of(int64_t realtime_ns) {
  const uint64_t first = point_count > kPoints ? point_count - kPoints : 0;
  uint64_t at = point_count - 1;
  while (at > first && points[at % kPoints].realtime_ns > realtime_ns) --at;
  const Point& a = points[at % kPoints];
  double per_ns = nominal_per_ns;
  if (point_count - first > 1) {
    const Point& from = at + 1 < point_count ? a : points[(at - 1) % kPoints];
    const Point& to = at + 1 < point_count ? points[(at + 1) % kPoints] : a;
    if (to.realtime_ns > from.realtime_ns)
      per_ns = static_cast<double>(to.ticks - from.ticks) / static_cast<double>(to.realtime_ns - from.realtime_ns);
  }
  return a.ticks +
         static_cast<uint64_t>(static_cast<int64_t>(static_cast<double>(realtime_ns - a.realtime_ns) * per_ns));
}

// Waits for the writer rather than drop.
void record_range(DoneRange& range, int64_t start_ns, int64_t end_ns) {
  for (int waits = 0; !has_room(2) && waits < kMaxWaits; ++waits) {
    const timespec nap = {0, 1'000'000};
    nanosleep(&nap, nullptr);
  }
  range.start_ticks = ticks_of(start_ns);
  range.end_ticks = ticks_of(end_ns);
  range.step = step_at(range.start_ticks);
  range.peer = -1;
  range.timed = range.began_in_window = true;
  record_done(range);
}

// Calls of the host by their correlation, until the work that they gave the device is known. Only such calls are worth
// a record: most calls of a program read or set something. CUPTI counts correlations up, so a call is forgotten kCalls
// calls later.
constexpr uint32_t kCalls = 1 << 16, kMaxThreads = 256, kCallNames = 2048;
enum CallState : uint8_t { kNone, kCalled, kWorked, kWritten };
struct Call {
  uint32_t correlation, thread;
  int64_t start_ns, end_ns;
  uint16_t id;
  bool driver;
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
  const char* said = nullptr;
  if (!cupti.call_name || cupti.call_name(call.driver ? kDriverDomain : kRuntimeDomain, call.id, &said) != kSuccess)
    said = nullptr;
  char name[128];
  snprintf(name, sizeof name, "%s", said ? said : call.driver ? "cuLaunch" : "cudaLaunch");
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

void take_call(const Functions& cupti, const uint8_t* record, bool driver) {
  const auto correlation = field<uint32_t>(record, kCallCorrelationAt);
  const auto start = field<int64_t>(record, kCallStartAt), end = field<int64_t>(record, kCallEndAt);
  Call& call = calls[correlation & (kCalls - 1)];
  const bool is_known = call.state != kNone && call.correlation == correlation;
  if (start <= 0 || end < start || (is_known && call.state == kWritten)) return;
  // The runtime's call and the driver's within it have one number: it is the outer one that people know.
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

void say_worked(const Functions& cupti, uint32_t correlation) {
  Call& call = calls[correlation & (kCalls - 1)];
  if (call.state == kNone || call.correlation != correlation)
    call = {correlation, 0, 0, 0, 0, false, kWorked};
  else if (call.state == kCalled)
    write_call(cupti, call);
}

// False: it has no times.
bool take_record(const Functions& cupti, const uint8_t* record) {
  const auto kind = field<uint32_t>(record, kKindAt);
  const bool kernel = kind == kConcurrentKernel;
  const auto start = field<int64_t>(record, kStartAt), end = field<int64_t>(record, kEndAt);
  if (start <= 0 || end < start) return false;
  DoneRange range{};
  range.lane = kernel ? lane_of(field<uint32_t>(record, kKernelDeviceAt), field<uint32_t>(record, kKernelContextAt),
                                field<uint32_t>(record, kKernelStreamAt))
                      : lane_of(field<uint32_t>(record, kCopyDeviceAt), field<uint32_t>(record, kCopyContextAt),
                                field<uint32_t>(record, kCopyStreamAt));
  range.name = kernel            ? name_of_kernel(field<const char*>(record, kKernelNameAt))
               : kind == kMemcpy ? name_of_copy(record[kCopyKindAt])
                                 : name_of("Memset");
  range.bytes = kernel ? -1 : field<int64_t>(record, kBytesAt);
  const auto correlation = field<uint32_t>(record, kernel ? kKernelCorrelationAt : kCopyCorrelationAt);
  range.sequence = correlation;
  say_worked(cupti, correlation);
  record_range(range, start, end);
  return true;
}

}  // namespace

void request_buffer(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = nullptr;
  *size = *max_records = 0;
  for (Buffer& b : buffers) {
    uint32_t free = kFree;
    if (!b.state.compare_exchange_strong(free, kTheirs, std::memory_order_acq_rel)) continue;
    if (!b.bytes) b.bytes = static_cast<uint8_t*>(aligned_alloc(64, kBufferBytes));
    if (!b.bytes) {
      b.state.store(kFree, std::memory_order_release);
      return;
    }
    *buffer = b.bytes;
    *size = kBufferBytes;
    return;
  }
}

void complete_buffer(void* context, uint32_t stream, uint8_t* bytes, size_t, size_t valid_size) {
  for (Buffer& b : buffers) {
    if (b.state.load(std::memory_order_acquire) != kTheirs || b.bytes != bytes) continue;
    b.valid = valid_size < kBufferBytes ? valid_size : kBufferBytes;
    b.context = context;
    b.stream = stream;
    b.state.store(kBack, std::memory_order_release);
    return;
  }
}

void read_clocks() {
  if (!is_on()) return;  // which clock ticks is chosen when a recording begins
  if (points_of != state.recording) {
    point_count = 0;
    nominal_per_ns = static_cast<double>(state.hot->ticks_per_second) * 1e-9;
  }
  points_of = state.recording;
  const Snapshot s = take_snapshot();
  if (point_count > 0) {
    const Point& last = points[(point_count - 1) % kPoints];
    // A line through two readings that lie close together leads kernels milliseconds away from it astray.
    if (s.monotonic_raw_ns - last_raw_ns < kMinApartNs) return;
    const int64_t moved = (s.realtime_ns - last.realtime_ns) - (s.monotonic_raw_ns - last_raw_ns);
    if (moved > 1'000'000 || moved < -1'000'000) point_count = 0;  // it was set: no line through that
  }
  points[point_count++ % kPoints] = {s.realtime_ns, s.ticks};
  last_raw_ns = s.monotonic_raw_ns;
}

// Begins a recording where there is none yet.
bool can_record() {
  if (!injection_is_on()) return false;
  if (points_of == state.recording && point_count > 1) return true;
  const timespec nap = {0, 2 * kMinApartNs};
  read_clocks();
  nanosleep(&nap, nullptr);
  read_clocks();
  return true;
}

// Calls first: the work that they gave the device says which of them to keep.
Taken take_buffers(const Functions& cupti) {
  Taken taken;
  uint32_t back = 0;  // buffers that are looked at, a bit each: others may come back meanwhile
  for (uint32_t i = 0; i < kBuffers; ++i)
    if (buffers[i].state.load(std::memory_order_acquire) == kBack) back |= 1u << i;
  for (const bool of_calls : {true, false})
    for (uint32_t i = 0; i < kBuffers; ++i) {
      Buffer& b = buffers[i];
      if ((back >> i & 1) == 0) continue;
      uint8_t* record = nullptr;
      while (b.valid > 0 && cupti.next_record(b.bytes, b.valid, &record) == kSuccess && record) {
        const auto kind = field<uint32_t>(record, kKindAt);
        const bool work = kind == kConcurrentKernel || kind == kMemcpy || kind == kMemset;
        if (of_calls && (kind == kRuntime || kind == kDriver)) take_call(cupti, record, kind == kDriver);
        if (of_calls || !work) continue;
        if (!can_record()) break;
        ++(take_record(cupti, record) ? taken.kernels : taken.lost);
      }
      if (of_calls) continue;
      size_t dropped = 0;
      if (cupti.dropped && cupti.dropped(b.context, b.stream, &dropped) == kSuccess) taken.lost += dropped;
      b.state.store(kFree, std::memory_order_release);
    }
  return taken;
}

}  // namespace slr::cupti
