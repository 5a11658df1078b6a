// NCCL's profiler plugin interface, versions 1 to 7 (NCCL 2.23 and newer), as far as it is used here, redeclared.
// Layouts are those of NCCL's own src/include/plugin/profiler/profiler_v*.h.
//
//   version    what changed for us
//   1          functions and data types are numbers
//   2, 3       … are texts, and so are algorithm and protocol; the communicator is named in every event
//   4          the communicator is named at init; kernels tell the device's times (KernelCh)
//   5, 6, 7    the type of an event has 64 bits; API events say whether a graph is being captured
#pragma once

#include <cstddef>
#include <cstdint>

namespace slr::nccl {

enum EventType : uint64_t {
  kColl = 1 << 1,
  kP2p = 1 << 2,
  kProxyCtrl = 1 << 5,
  kKernelCh = 1 << 6,
  kNetPlugin = 1 << 7,
  kCollApi = 1 << 9,
  kP2pApi = 1 << 10
};
inline constexpr int kKernelChStop = 22;  // of recordEventState: its argument begins with the device's time

struct CollV1 {
  const char* name;
  uint64_t comm_hash, sequence;
  uint8_t function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  uint8_t datatype;
  uint32_t operation;
  size_t traffic_bytes;
  uint8_t channels, warps, algorithm, protocol;
};
struct P2pV1 {
  const char* name;
  uint64_t comm_hash;
  uint8_t function;
  void* buffer;
  uint8_t datatype;
  size_t count;
  int peer;
};
struct CollV2 {
  const char* name;
  uint64_t comm_hash, sequence;
  const char* function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* datatype;
  size_t traffic_bytes;
  uint8_t channels, warps;
  const char *algorithm, *protocol;
};
struct CollV3 {
  const char* name;
  uint64_t comm_hash, sequence;
  const char* function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* datatype;
  uint8_t channels, warps;
  const char *algorithm, *protocol;
};
struct P2pV2 {
  const char* name;
  uint64_t comm_hash;
  const char* function;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
};
struct CollV4 {
  uint64_t sequence;
  const char* function;
  const void* send;
  void* receive;
  size_t count;
  int root;
  const char* datatype;
  uint8_t channels, warps;
  const char *algorithm, *protocol;
};
struct P2pV4 {
  const char* function;
  void* buffer;
  const char* datatype;
  size_t count;
  int peer;
  uint8_t channels;
};
struct KernelChV4 {
  uint8_t channel;
  uint64_t timer;  // ns of the device's global timer
};
struct CollApiV5 {
  const char* function;
  size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool captured;
};
struct P2pApiV5 {
  const char* function;
  size_t count;
  const char* datatype;
  void* stream;
  bool captured;
};

template <class Type, class Coll, class P2p> struct Event {
  Type type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2p p2p;
    KernelChV4 kernel;   // since 4
    CollApiV5 coll_api;  // since 5
    P2pApiV5 p2p_api;    // since 5
  };
};
using EventV1 = Event<uint8_t, CollV1, P2pV1>;
using EventV2 = Event<uint8_t, CollV2, P2pV2>;
using EventV3 = Event<uint8_t, CollV3, P2pV2>;
using EventV4 = Event<uint8_t, CollV4, P2pV4>;
using EventV5 = Event<uint64_t, CollV4, P2pV4>;  // and 6, 7: what is behind is not looked at
static_assert(offsetof(EventV1, coll) == 24 && offsetof(EventV5, coll) == 24);

template <class Init, class EventOf> struct Plugin {
  const char* name;
  Init init;
  int (*start)(void* context, void** handle, EventOf* event);
  int (*stop)(void* handle);
  int (*record_state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};
using InitV1 = int (*)(void** context, int* mask);
using InitV4 = int (*)(void** context, int* mask, const char* name, uint64_t hash, int nodes, int ranks, int rank,
                       void* log);
using InitV5 = int (*)(void** context, uint64_t hash, int* mask, const char* name, int nodes, int ranks, int rank,
                       void* log);

}  // namespace slr::nccl
