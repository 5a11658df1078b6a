// libcupti.so over nothing. Kernels, copies and fills are put into the client's buffers in order, in records of
// Kernel10's and Memcpy6's sizes. All places but the known ones are filled with noise.
#include "fake_cupti.h"

#include <time.h>

#include <cstring>
#include <mutex>

#include "inject/cupti_abi.h"

namespace {

using namespace slr::cupti;

FakeCupti fake;
std::mutex mutex;
RequestBuffer request = nullptr;
CompleteBuffer complete = nullptr;
uint8_t* buffer = nullptr;
size_t size = 0, used = 0;
bool enabled[64] = {};
size_t dropped = 0;

constexpr size_t kKernelBytes = 216, kCopyBytes = 152, kCallBytes = 40;

void give_back() {
  uint8_t* full = buffer;
  const size_t bytes = used, room = size;
  buffer = nullptr;
  used = size = 0;
  if (full) complete(nullptr, 0, full, room, bytes);
}

// Room for a record, in a new buffer if it must be; nullptr: the client has none.
uint8_t* take(size_t bytes) {
  if (buffer && used + bytes > size) give_back();
  if (!buffer) {
    size_t max = 0;
    request(&buffer, &size, &max);
    if (!buffer || size < bytes) return ++dropped, nullptr;
  }
  uint8_t* at = buffer + used;
  memset(at, 0xa5, bytes);
  used += bytes;
  return at;
}
template <class T> void put(uint8_t* record, size_t at, T value) { memcpy(record + at, &value, sizeof value); }

}  // namespace

extern "C" {

FakeCupti* fake_cupti() { return &fake; }
void fake_cupti_kernel(const char* name, int64_t start_ns, int64_t end_ns, uint32_t device, uint32_t stream) {
  const std::lock_guard lock(mutex);
  if (!enabled[kConcurrentKernel]) return;
  uint8_t* r = take(kKernelBytes);
  if (!r) return;
  put<uint32_t>(r, kKindAt, kConcurrentKernel);
  put(r, kStartAt, start_ns);
  put(r, kEndAt, end_ns);
  put(r, kKernelDeviceAt, device);
  put<uint32_t>(r, kKernelContextAt, 1);
  put(r, kKernelStreamAt, stream);
  put(r, kKernelNameAt, name);
  put(r, kKernelCorrelationAt, fake.correlation);
}
void fake_cupti_call(bool driver, uint32_t id, uint32_t correlation, uint32_t thread, int64_t start_ns,
                     int64_t end_ns) {
  const std::lock_guard lock(mutex);
  const Kind kind = driver ? kDriver : kRuntime;
  if (!enabled[kind]) return;
  uint8_t* r = take(kCallBytes);
  if (!r) return;
  put<uint32_t>(r, kKindAt, kind);
  put(r, kCallIdAt, id);
  put(r, kCallStartAt, start_ns);
  put(r, kCallEndAt, end_ns);
  put(r, kCallThreadAt, fake.thread_ids_of_system ? thread : thread ^ 0x5a5a5a5a);
  put(r, kCallCorrelationAt, correlation);
}
void fake_cupti_copy(uint8_t kind, int64_t bytes, int64_t start_ns, int64_t end_ns, uint32_t stream) {
  const std::lock_guard lock(mutex);
  if (!enabled[kMemcpy]) return;
  uint8_t* r = take(kCopyBytes);
  if (!r) return;
  put<uint32_t>(r, kKindAt, kMemcpy);
  put(r, kCopyKindAt, kind);
  put(r, kBytesAt, bytes);
  put(r, kStartAt, start_ns);
  put(r, kEndAt, end_ns);
  put<uint32_t>(r, kCopyDeviceAt, 0);
  put<uint32_t>(r, kCopyContextAt, 1);
  put(r, kCopyStreamAt, stream);
  put(r, kCopyCorrelationAt, fake.correlation);
}

int cuptiSubscribe(void** subscriber, Callback, void*) {
  ++fake.subscribes;
  if (fake.subscribed) return kMultipleSubscribers;
  if (fake.subscribe_error) return fake.subscribe_error;
  fake.subscribed = true;
  return *subscriber = &fake, 0;
}
int cuptiUnsubscribe(void*) { return fake.subscribed = false, 0; }
int cuptiActivityRegisterCallbacks(RequestBuffer r, CompleteBuffer c) {
  ++fake.registered;
  request = r;
  complete = c;
  return 0;
}
int cuptiActivityEnable(uint32_t kind) {
  if (fake.enable_error) return fake.enable_error;
  const std::lock_guard lock(mutex);
  ++fake.enables;
  return enabled[kind & 63] = true, 0;
}
int cuptiActivityDisable(uint32_t kind) {
  const std::lock_guard lock(mutex);
  return enabled[kind & 63] = false, 0;
}
int cuptiActivityFlushAll(uint32_t) {
  const std::lock_guard lock(mutex);
  give_back();
  return 0;
}
int cuptiActivityGetNextRecord(uint8_t* bytes, size_t valid, uint8_t** record) {
  uint32_t kind = 0;
  size_t at = 0;
  if (*record) {
    memcpy(&kind, *record, 4);
    at = static_cast<size_t>(*record - bytes) + (kind == kConcurrentKernel             ? kKernelBytes
                                                 : kind == kDriver || kind == kRuntime ? kCallBytes
                                                                                       : kCopyBytes);
  }
  if (at >= valid) return 12;
  *record = bytes + at;
  return 0;
}
int cuptiSetThreadIdType(uint32_t type) { return fake.thread_ids_of_system = type == kThreadIdOfSystem, 0; }
int cuptiGetCallbackName(uint32_t domain, uint32_t id, const char** name) {
  if (domain == kRuntimeDomain && id == 211) return *name = "cudaLaunchKernel_v7000", 0;
  if (domain == kRuntimeDomain && id == 41) return *name = "cudaMemcpyAsync_v3020", 0;
  if (domain == kDriverDomain && id == 307) return *name = "cuLaunchKernel", 0;
  return 1;
}
int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* count) {
  const std::lock_guard lock(mutex);
  *count = dropped;
  return dropped = 0, 0;
}

// As the tool that another injection would be: it takes CUPTI first.
int InitializeInjection() {
  ++fake.injections;
  void* subscriber = nullptr;
  return cuptiSubscribe(&subscriber, nullptr, nullptr) == 0;
}
}
