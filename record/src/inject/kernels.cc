#include "inject/kernels.h"

#include <cxxabi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "inject/device_times.h"
#include "inject/injected.h"
#include "inject/launch_calls.h"

namespace slr::cupti {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr uint32_t kBuffers = 32, kMaxStreams = 256, kNamesKept = 1 << 12;

enum BufferState : uint32_t { kFree, kTheirs, kBack };
struct Buffer {
  std::atomic<uint32_t> state;
  uint8_t* bytes;
  size_t valid;
  void* context;
  uint32_t stream;
};
Buffer buffers[kBuffers];

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

// Returns the name as people write it, "void gemm<float>(…)". It is demangled once and kept by its hash.
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

// Records a kernel, copy or fill. Returns false when it has no times.
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
  note_work(cupti, correlation);
  record_range(range, start, end);
  return true;
}

// Takes the records of one buffer: those of calls, or those of the device's work.
void take_records(const Functions& cupti, const Buffer& b, bool of_calls, Taken& taken) {
  uint8_t* record = nullptr;
  while (b.valid > 0 && cupti.next_record(b.bytes, b.valid, &record) == kSuccess && record) {
    const auto kind = field<uint32_t>(record, kKindAt);
    if (of_calls) {
      if (kind == kRuntime || kind == kDriver) take_call(cupti, record, kind == kDriver);
    } else if (kind == kConcurrentKernel || kind == kMemcpy || kind == kMemset) {
      if (!can_record()) return;
      ++(take_record(cupti, record) ? taken.kernels : taken.lost);
    }
  }
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

Taken take_buffers(const Functions& cupti) {
  Taken taken;
  uint32_t back = 0;  // a bit for each buffer that came back so far; others may come back meanwhile
  for (uint32_t i = 0; i < kBuffers; ++i)
    if (buffers[i].state.load(std::memory_order_acquire) == kBack) back |= 1u << i;
  // Calls first, because the work that they gave the device decides which of them are recorded.
  for (uint32_t i = 0; i < kBuffers; ++i)
    if (back >> i & 1) take_records(cupti, buffers[i], true, taken);
  for (uint32_t i = 0; i < kBuffers; ++i) {
    if ((back >> i & 1) == 0) continue;
    Buffer& b = buffers[i];
    take_records(cupti, b, false, taken);
    size_t dropped = 0;
    if (cupti.dropped && cupti.dropped(b.context, b.stream, &dropped) == kSuccess) taken.lost += dropped;
    b.state.store(kFree, std::memory_order_release);
  }
  return taken;
}

}  // namespace slr::cupti
