// What is used of CUPTI, declared anew: nothing of it is needed to build. Records are read by places that have been the
// same since CUDA 11; tests/record/cupti_layout_test.cc holds them to CUPTI's own headers where these are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slr::cupti {

inline constexpr int kSuccess = 0, kMultipleSubscribers = 39;
inline constexpr uint32_t kFlushForced = 1;

enum Kind : uint32_t { kMemcpy = 1, kMemset = 2, kConcurrentKernel = 10 };

// CUpti_ActivityKernel4 and newer.
inline constexpr size_t kKindAt = 0, kStartAt = 16, kEndAt = 24, kKernelDeviceAt = 40, kKernelContextAt = 44,
                        kKernelStreamAt = 48, kKernelNameAt = 104;
// CUpti_ActivityMemcpy and CUpti_ActivityMemset, all versions; start and end as above.
inline constexpr size_t kCopyKindAt = 4, kBytesAt = 8, kCopyDeviceAt = 32, kCopyContextAt = 36, kCopyStreamAt = 40;

using Subscriber = void*;
using RequestBuffer = void (*)(uint8_t** buffer, size_t* size, size_t* most_records);
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
  int (*dropped)(void* context, uint32_t stream, size_t* count);
};

}  // namespace slr::cupti
