// The two sides of an injection: the recorder's shared library as a program under it sees it, and programs that use
// NVTX and mstx, with the tables of their headers.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "inject/nvtx_abi.h"
#include "stageline_record.h"

// libstageline_record.so; the test's own copy of the recorder stays unused.
struct InjectedLibrary {
  void* library;
  int (*init)(const slr_config*);
  void (*shutdown)();
  void (*stats)(slr_statistics*);
  void (*window)(int64_t, int64_t);
  void (*step)(int64_t);
  int (*flush)(int);

  InjectedLibrary() : library(dlopen(STAGELINE_RECORD_LIBRARY, RTLD_NOW | RTLD_LOCAL)) {
    if (!library) _exit(98);
    find("slr_init", init);
    find("slr_shutdown", shutdown);
    find("slr_stats", stats);
    find("slr_window", window);
    find("slr_step", step);
    find("slr_flush", flush);
  }
  template <class F> void find(const char* name, F& to) const {
    to = reinterpret_cast<F>(dlsym(library, name));
    if (!to) _exit(97);
  }
  slr_statistics statistics() const {
    slr_statistics s{};
    s.size = sizeof s;
    stats(&s);
    return s;
  }
};

namespace nvtx_client {

using namespace slr::nvtx;

// One linkage unit's pointers, as NVTX keeps them; stubs that are there before a tool attaches count their calls.
struct Tables {
  Function core[16] = {}, core2[16] = {}, cuda[9] = {}, cudart[7] = {};
  Function* core_places[17] = {};
  Function* core2_places[17] = {};
  Function* cuda_places[10] = {};
  Function* cudart_places[8] = {};
  unsigned core_size = 16;
};
inline Tables* attached;  // by the export table's functions, which take no argument for it
inline uint32_t injection_version;
inline int stub_calls;
inline void stub() { ++stub_calls; }

inline int module_table(uint32_t module, FunctionTable* table, unsigned* size) {
  Tables& t = *attached;
  switch (module) {
    case kCore: *table = t.core_places, *size = t.core_size; return 1;
    case kCore2: *table = t.core2_places, *size = 16; return 1;
    case kCuda: *table = t.cuda_places, *size = 9; return 1;
    case kCudaRt: *table = t.cudart_places, *size = 7; return 1;
    default: return 0;
  }
}
inline const void* export_table(uint32_t id) {
  static const Callbacks callbacks = {sizeof callbacks, module_table};
  static const VersionInfo version = {sizeof version, 3, 0, [](uint32_t v) { injection_version = v; }};
  return id == kCallbacks ? static_cast<const void*>(&callbacks) : id == kVersionInfo ? &version : nullptr;
}

inline void prepare(Tables& t) {
  const auto fill = [](auto& functions, auto& places) {
    for (size_t i = 1; i < sizeof functions / sizeof functions[0]; ++i) {
      functions[i] = stub;
      places[i] = &functions[i];
    }
  };
  fill(t.core, t.core_places);
  fill(t.core2, t.core2_places);
  fill(t.cuda, t.cuda_places);
  fill(t.cudart, t.cudart_places);
}
inline bool attach(const InjectedLibrary& from, Tables& t) {
  prepare(t);
  attached = &t;
  int (*initialize)(GetExportTable);
  from.find("InitializeInjectionNvtx2", initialize);
  return initialize(export_table) != 0;
}

template <class R, class... A> R call(Function f, A... arguments) {
  return reinterpret_cast<R (*)(A...)>(f)(arguments...);
}
inline int push(Tables& t, const char* text) { return call<int>(t.core[kRangePushA], text); }
inline int pop(Tables& t) { return call<int>(t.core[kRangePop]); }
inline Attributes message(const char* text) {
  Attributes a{};
  a.version = 3;
  a.size = sizeof a;
  a.message_type = kAscii;
  a.message = text;
  return a;
}

}  // namespace nvtx_client

namespace mstx_client {

using Function = void (*)();
inline Function core[5], domain[6];
inline Function* core_places[6];
inline Function* domain_places[7];

inline int module_table(unsigned module, Function*** table, unsigned* size) {
  if (module == 1) return *table = core_places, *size = 5, 0;
  if (module == 2) return *table = domain_places, *size = 6, 0;
  return 1;
}
inline bool attach(const InjectedLibrary& from) {
  for (int i = 1; i < 5; ++i) core_places[i] = &core[i];
  for (int i = 1; i < 6; ++i) domain_places[i] = &domain[i];
  int (*initialize)(int (*)(unsigned, Function***, unsigned*));
  from.find("InitInjectionMstx", initialize);
  return initialize(module_table) == 0;
}

}  // namespace mstx_client
