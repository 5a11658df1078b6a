// The used part of CUPTI, redeclared: nothing of it is needed to build. Records are read by places that have been the
// same since CUDA 11; tests/record/cupti_layout_test.cc compares them with CUPTI's own headers if these are installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace slr::cupti {

inline constexpr int kSuccess = 0, kMultipleSubscribers = 39;
inline constexpr uint32_t kFlushForced = 1;

enum Kind : uint32_t { kMemcpy = 1, kMemset = 2, kDriver = 4, kRuntime = 5, kConcurrentKernel = 10 };
inline constexpr uint32_t kDriverDomain = 1, kRuntimeDomain = 2;  // of names of calls
inline constexpr uint32_t kThreadIdOfSystem = 1;

// CUpti_ActivityKernel4 and newer.
inline constexpr size_t kKindAt = 0, kStartAt = 16, kEndAt = 24, kKernelDeviceAt = 40, kKernelContextAt = 44,
                        kKernelStreamAt = 48, kKernelCorrelationAt = 92, kKernelNameAt = 104;
// CUpti_ActivityMemcpy and CUpti_ActivityMemset, all versions; start and end as above.
inline constexpr size_t kCopyKindAt = 4, kBytesAt = 8, kCopyDeviceAt = 32, kCopyContextAt = 36, kCopyStreamAt = 40,
                        kCopyCorrelationAt = 44;
// CUpti_ActivityAPI.
inline constexpr size_t kCallIdAt = 4, kCallStartAt = 8, kCallEndAt = 16, kCallThreadAt = 28, kCallCorrelationAt = 32;

// A member of a record, at one of the places above.
template <class T> T field(const uint8_t* record, size_t at) {
  T value;
  std::memcpy(&value, record + at, sizeof value);
  return value;
}

using Subscriber = void*;
using RequestBuffer = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using CompleteBuffer = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid_size);
using Callback = void (*)(void* user, uint32_t domain, uint32_t id, const void* data);

struct Functions {
  int (*subscribe)(Subscriber* subscriber, Callback callback, void* user);
  int (*unsubscribe)(Subscriber subscriber);
  int (*register_callbacks)(RequestBuffer request, CompleteBuffer complete);
  int (*enable)(uint32_t kind);
  int (*disable)(uint32_t kind);
  int (*flush_all)(uint32_t flags);
  int (*next_record)(uint8_t* buffer, size_t valid_size, uint8_t** record);
  // Nullptr in a CUPTI that has none of them.
  int (*dropped)(void* context, uint32_t stream, size_t* count);
  int (*set_thread_id)(uint32_t type);
  int (*call_name)(uint32_t domain, uint32_t id, const char** name);
};

}  // namespace slr::cupti
