// The binary interface between programs that use NVTX v3 and a library that listens to them, redeclared: nothing of
// NVTX is needed to build. Numbers and places are those of nvtxTypes.h and nvToolsExt.h (CUDA 13.0);
// tests/record/nvtx_layout_test.cc compares them with the headers if these are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slr::nvtx {

enum ExportTable : uint32_t { kCallbacks = 1, kVersionInfo = 3 };
enum Module : uint32_t { kCore = 1, kCuda = 2, kCudaRt = 4, kCore2 = 5 };
enum CoreId : uint32_t {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop,
  kNameOsThreadA = 14,
  kNameOsThreadW,
  kCoreIds
};
enum Core2Id : uint32_t {
  kDomainMarkEx = 1,
  kDomainRangeStartEx,
  kDomainRangeEnd,
  kDomainRangePushEx,
  kDomainRangePop,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW,
  kDomainCreateA,
  kDomainCreateW,
  kDomainDestroy,
  kCore2Ids
};
enum StreamId : uint32_t { kNameCuStreamA = 5, kNameCudaStreamA = 3 };

using Function = void (*)();
using FunctionTable = Function**;  // entry → where the program keeps the pointer that it calls

struct Callbacks {
  size_t struct_size;
  int (*get_module_function_table)(uint32_t module, FunctionTable* table, unsigned* size);
};
struct VersionInfo {
  size_t struct_size;
  uint32_t version, reserved;
  void (*set_injection_version)(uint32_t version);
};
using GetExportTable = const void* (*)(uint32_t table);

enum MessageType : int32_t { kAscii = 1, kUnicode = 2, kRegistered = 3 };

// nvtxEventAttributes_v2. An older client's may end earlier: `size` says where.
struct Attributes {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const void* message;  // char*, wchar_t* or a registered handle
};
static_assert(sizeof(Attributes) == 48 && offsetof(Attributes, message) == 40);

}  // namespace slr::nvtx
