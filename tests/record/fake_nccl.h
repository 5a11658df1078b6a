// NCCL as a profiler plugin sees it: the events of interface versions 1 to 7 with their whole layouts, declared apart
// from record/src/inject/nccl_abi.h, which they check.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace fake_nccl {

struct ProxyOp {
  pid_t pid;
  uint8_t channel;
  int peer, steps, chunk, is_send;
};
struct KernelCh {
  uint8_t channel;
  uint64_t timer;
};

struct EventOne {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      const char* name;
      uint64_t hash, sequence;
      uint8_t func;
      const void* send;
      void* recv;
      size_t count;
      int root;
      uint8_t datatype;
      uint32_t op;
      size_t traffic;
      uint8_t max_channels, warps, algo, proto;
      int collnet, nvls;
    } coll;
    struct {
      const char* name;
      uint64_t hash;
      uint8_t func;
      void* buff;
      uint8_t datatype;
      size_t count;
      int peer;
    } p2p;
    ProxyOp proxy;
  };
};
struct EventTwo {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      const char* name;
      uint64_t hash, sequence;
      const char* func;
      const void* send;
      void* recv;
      size_t count;
      int root;
      const char* datatype;
      size_t traffic;
      uint8_t max_channels, warps;
      const char *algo, *proto;
    } coll;
    struct {
      const char* name;
      uint64_t hash;
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
    } p2p;
    ProxyOp proxy;
  };
};
struct EventThree {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      const char* name;
      uint64_t hash, sequence;
      const char* func;
      const void* send;
      void* recv;
      size_t count;
      int root;
      const char* datatype;
      uint8_t max_channels, warps;
      const char *algo, *proto;
    } coll;
    struct {
      const char* name;
      uint64_t hash;
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
    } p2p;
    ProxyOp proxy;
  };
};
template <class Type> struct EventFour {  // 5 to 7 with a wider type and more members behind
  Type type;
  void* parent;
  int rank;
  union {
    struct {
      bool captured;
      int depth;
    } group_api;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      int root;
      void* stream;
      bool captured;
      uint64_t tag;  // 7
    } coll_api;
    struct {
      const char* func;
      size_t count;
      const char* datatype;
      void* stream;
      bool captured;
      uint64_t tag;
    } p2p_api;
    struct {
      uint64_t sequence;
      const char* func;
      const void* send;
      void* recv;
      size_t count;
      int root;
      const char* datatype;
      uint8_t channels, warps;
      const char *algo, *proto;
      void* group;          // 5
      const char* variant;  // 7
      bool symmetric;
      uint64_t tag;
    } coll;
    struct {
      const char* func;
      void* buff;
      const char* datatype;
      size_t count;
      int peer;
      uint8_t channels;
      void* group;
      uint64_t tag;
    } p2p;
    ProxyOp proxy;
    KernelCh kernel;
  };
};

enum Type {
  kGroup = 1,
  kColl = 2,
  kP2p = 4,
  kProxyOp = 8,
  kKernelCh = 64,
  kGroupApi = 256,
  kCollApi = 512,
  kP2pApi = 1024
};

template <class Event, class... Init> struct Table {
  const char* name;
  int (*init)(Init...);
  int (*start)(void*, void**, Event*);
  int (*stop)(void*);
  int (*record_state)(void*, int, void*);
  int (*finalize)(void*);
};
using TableOne = Table<EventOne, void**, int*>;
using TableTwo = Table<EventTwo, void**, int*>;
using TableThree = Table<EventThree, void**, int*>;
using TableFour = Table<EventFour<uint8_t>, void**, int*, const char*, uint64_t, int, int, int, void*>;
using TableFive = Table<EventFour<uint64_t>, void**, uint64_t, int*, const char*, int, int, int, void*>;

}  // namespace fake_nccl
