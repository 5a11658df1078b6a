// Our declarations of NVTX's binary interface against NVTX's own headers, and a program that was compiled with them.
#include <dlfcn.h>

#include "inject/nvtx_abi.h"
#include "record_fixture.h"

#define NVTX_EXPORT_API 1
#include <nvtx3/nvToolsExt.h>

namespace ours = slr::nvtx;

static_assert(sizeof(ours::Attributes) == sizeof(nvtxEventAttributes_t));
static_assert(offsetof(ours::Attributes, size) == offsetof(nvtxEventAttributes_t, size));
static_assert(offsetof(ours::Attributes, category) == offsetof(nvtxEventAttributes_t, category));
static_assert(offsetof(ours::Attributes, payload_type) == offsetof(nvtxEventAttributes_t, payloadType));
static_assert(offsetof(ours::Attributes, payload) == offsetof(nvtxEventAttributes_t, payload));
static_assert(offsetof(ours::Attributes, message_type) == offsetof(nvtxEventAttributes_t, messageType));
static_assert(offsetof(ours::Attributes, message) == offsetof(nvtxEventAttributes_t, message));
static_assert(static_cast<int>(ours::kAscii) == NVTX_MESSAGE_TYPE_ASCII &&
              static_cast<int>(ours::kUnicode) == NVTX_MESSAGE_TYPE_UNICODE &&
              static_cast<int>(ours::kRegistered) == NVTX_MESSAGE_TYPE_REGISTERED);
static_assert(sizeof(ours::Callbacks) == sizeof(NvtxExportTableCallbacks) &&
              sizeof(ours::VersionInfo) == sizeof(NvtxExportTableVersionInfo));
static_assert(offsetof(ours::VersionInfo, set_injection_version) ==
              offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion));
#define SAME(own, theirs) static_assert(static_cast<int>(ours::own) == static_cast<int>(theirs))
SAME(kCallbacks, NVTX_ETID_CALLBACKS);
SAME(kVersionInfo, NVTX_ETID_VERSIONINFO);
SAME(kCore, NVTX_CB_MODULE_CORE);
SAME(kCore2, NVTX_CB_MODULE_CORE2);
SAME(kCuda, NVTX_CB_MODULE_CUDA);
SAME(kCudaRt, NVTX_CB_MODULE_CUDART);
SAME(kMarkEx, NVTX_CBID_CORE_MarkEx);
SAME(kMarkW, NVTX_CBID_CORE_MarkW);
SAME(kRangeStartEx, NVTX_CBID_CORE_RangeStartEx);
SAME(kRangeEnd, NVTX_CBID_CORE_RangeEnd);
SAME(kRangePushEx, NVTX_CBID_CORE_RangePushEx);
SAME(kRangePushA, NVTX_CBID_CORE_RangePushA);
SAME(kRangePop, NVTX_CBID_CORE_RangePop);
SAME(kNameOsThreadA, NVTX_CBID_CORE_NameOsThreadA);
SAME(kCoreIds, NVTX_CBID_CORE_SIZE);
SAME(kDomainMarkEx, NVTX_CBID_CORE2_DomainMarkEx);
SAME(kDomainRangePop, NVTX_CBID_CORE2_DomainRangePop);
SAME(kDomainRegisterStringA, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(kDomainCreateA, NVTX_CBID_CORE2_DomainCreateA);
SAME(kDomainDestroy, NVTX_CBID_CORE2_DomainDestroy);
SAME(kNameCuStreamA, NVTX_CBID_CUDA_NameCuStreamA);
SAME(kNameCudaStreamA, NVTX_CBID_CUDART_NameCudaStreamA);

TEST_CASE("a program compiled with NVTX's own headers is recorded by setting a variable") {
  RecordFolder folder;
  CHECK(in_child([&] {
          setenv("STAGELINE_DIR", folder.path().c_str(), 1);
          setenv("RANK", "0", 1);
          setenv("NVTX_INJECTION64_PATH", STAGELINE_RECORD_LIBRARY, 1);
          if (nvtxRangePushA("outer") != 0) return 1;
          const nvtxDomainHandle_t domain = nvtxDomainCreateA("pp");
          const nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain, "F3");
          nvtxEventAttributes_t a = {};
          a.version = NVTX_VERSION;
          a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
          a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
          a.message.registered = text;
          a.payloadType = NVTX_PAYLOAD_TYPE_INT32;
          a.payload.iValue = 3;
          if (nvtxDomainRangePushEx(domain, &a) != 0 || nvtxDomainRangePop(domain) != 0) return 2;
          nvtxRangeEnd(nvtxRangeStartEx(&a));
          nvtxMarkA("mark");
          nvtxNameOsThreadA(1, "nobody");
          if (nvtxRangePop() != 0) return 3;
          nvtxDomainDestroy(domain);
          void* library = dlopen(STAGELINE_RECORD_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
          if (!library) return 4;
          reinterpret_cast<void (*)()>(dlsym(library, "slr_shutdown"))();
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(count_rows(r, recording::RecordType::kRange) == 3);
  CHECK(count_rows(r, recording::RecordType::kInstant) == 1);
  CHECK(std::any_of(r.content.names.begin(), r.content.names.end(),
                    [](const auto& name) { return name.second == "F3"; }));
}
