// Compares the used parts of CUPTI's records with its own header if it is installed.
#include <cupti.h>
#include <doctest/doctest.h>

#include "inject/cupti_abi.h"

using namespace slr::cupti;

TEST_CASE("our places in CUPTI's records are those of its header") {
  CHECK(kSuccess == CUPTI_SUCCESS);
  CHECK(kMultipleSubscribers == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  CHECK(kFlushForced == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  CHECK(kMemcpy == CUPTI_ACTIVITY_KIND_MEMCPY);
  CHECK(kMemset == CUPTI_ACTIVITY_KIND_MEMSET);
  CHECK(kDriver == CUPTI_ACTIVITY_KIND_DRIVER);
  CHECK(kRuntime == CUPTI_ACTIVITY_KIND_RUNTIME);
  CHECK(kDriverDomain == CUPTI_CB_DOMAIN_DRIVER_API);
  CHECK(kRuntimeDomain == CUPTI_CB_DOMAIN_RUNTIME_API);
  CHECK(kThreadIdOfSystem == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  CHECK(kConcurrentKernel == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  using Kernel = CUpti_ActivityKernel9;
  CHECK(offsetof(Kernel, kind) == kKindAt);
  CHECK(offsetof(Kernel, start) == kStartAt);
  CHECK(offsetof(Kernel, end) == kEndAt);
  CHECK(offsetof(Kernel, deviceId) == kKernelDeviceAt);
  CHECK(offsetof(Kernel, contextId) == kKernelContextAt);
  CHECK(offsetof(Kernel, streamId) == kKernelStreamAt);
  CHECK(offsetof(Kernel, name) == kKernelNameAt);
  CHECK(offsetof(Kernel, correlationId) == kKernelCorrelationAt);
  CHECK(offsetof(CUpti_ActivityAPI, cbid) == kCallIdAt);
  CHECK(offsetof(CUpti_ActivityAPI, start) == kCallStartAt);
  CHECK(offsetof(CUpti_ActivityAPI, end) == kCallEndAt);
  CHECK(offsetof(CUpti_ActivityAPI, threadId) == kCallThreadAt);
  CHECK(offsetof(CUpti_ActivityAPI, correlationId) == kCallCorrelationAt);
  using Copy = CUpti_ActivityMemcpy5;
  CHECK(offsetof(Copy, copyKind) == kCopyKindAt);
  CHECK(offsetof(Copy, bytes) == kBytesAt);
  CHECK(offsetof(Copy, start) == kStartAt);
  CHECK(offsetof(Copy, end) == kEndAt);
  CHECK(offsetof(Copy, deviceId) == kCopyDeviceAt);
  CHECK(offsetof(Copy, contextId) == kCopyContextAt);
  CHECK(offsetof(Copy, streamId) == kCopyStreamAt);
  CHECK(offsetof(Copy, correlationId) == kCopyCorrelationAt);
  using Fill = CUpti_ActivityMemset4;
  CHECK(offsetof(Fill, bytes) == kBytesAt);
  CHECK(offsetof(Fill, start) == kStartAt);
  CHECK(offsetof(Fill, end) == kEndAt);
  CHECK(offsetof(Fill, deviceId) == kCopyDeviceAt);
  CHECK(offsetof(Fill, contextId) == kCopyContextAt);
  CHECK(offsetof(Fill, streamId) == kCopyStreamAt);
  CHECK(offsetof(Fill, correlationId) == kCopyCorrelationAt);
  CHECK(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD == 1);
  CHECK(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP == 10);
}
