// Listens to mstx, Ascend's twin of NVTX: MSTX_INJECTION_PATH=libstageline_record.so makes a program that uses it call
// InitInjectionMstx at its first mark. Callbacks get the stream, so its ranges have device times without a guess.
//
// A program that merely links this library is asked too (mstx looks among all that is loaded where the variable is
// unset): then nothing is recorded unless STAGELINE_MSTX=1.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inject/behind.h"
#include "inject/injected.h"

namespace slr {
namespace mstx {
namespace {

using FunctionTable = Function**;
using GetTable = int (*)(unsigned module, FunctionTable* table, unsigned* size);
constexpr int kSuccess = 0, kFail = 1;
// Modules and entries as mstx_types.h numbers them.
enum Module : unsigned { kCore = 1, kDomain = 2 };
enum CoreId : unsigned { kMarkA = 1, kRangeStartA, kRangeEnd, kCoreIds };
enum DomainId : unsigned { kCreateA = 1, kDestroy, kDomainMarkA, kDomainRangeStartA, kDomainRangeEnd, kDomainIds };

std::atomic<Function> their_core[kCoreIds], their_domain[kDomainIds];

slr_lane lane_of(void* stream) { return lane_of_stream(SLR_ACL, stream, "npu stream"); }
uint64_t start(Domain& domain, const char* text, void* stream, uint64_t their) {
  return joined_id(text ? start_injected(domain, name_of(text), lane_of(stream)) : 0, their);
}

void mark_a(const char* text, void* stream) {
  if (const auto next = behind<void (*)(const char*, void*)>(their_core[kMarkA])) next(text, stream);
  if (text) mark_injected(*domain_of(nullptr), name_of(text), lane_of(stream));
}
uint64_t range_start_a(const char* text, void* stream) {
  const auto next = behind<uint64_t (*)(const char*, void*)>(their_core[kRangeStartA]);
  return start(*domain_of(nullptr), text, stream, next ? next(text, stream) : 0);
}
void range_end(uint64_t id) {
  if (const auto next = behind<void (*)(uint64_t)>(their_core[kRangeEnd])) next(their_id(id));
  end_joined(id);
}
void* domain_create_a(const char* name) {
  Domain* domain = domain_named(name);
  const auto next = behind<void* (*)(const char*)>(their_domain[kCreateA]);
  if (next && !domain->theirs.load()) domain->theirs.store(next(name));
  return domain;
}
void domain_destroy(void* handle) {
  if (const auto next = behind<void (*)(void*)>(their_domain[kDestroy]))
    next(domain_of(handle)->theirs.exchange(nullptr));
}
void domain_mark_a(void* handle, const char* text, void* stream) {
  Domain& domain = *domain_of(handle);
  if (const auto next = behind<void (*)(void*, const char*, void*)>(their_domain[kDomainMarkA]))
    next(domain.theirs.load(), text, stream);
  if (text) mark_injected(domain, name_of(text), lane_of(stream));
}
uint64_t domain_range_start_a(void* handle, const char* text, void* stream) {
  Domain& domain = *domain_of(handle);
  const auto next = behind<uint64_t (*)(void*, const char*, void*)>(their_domain[kDomainRangeStartA]);
  return start(domain, text, stream, next ? next(domain.theirs.load(), text, stream) : 0);
}
void domain_range_end(void* handle, uint64_t id) {
  if (const auto next = behind<void (*)(void*, uint64_t)>(their_domain[kDomainRangeEnd]))
    next(domain_of(handle)->theirs.load(), their_id(id));
  end_joined(id);
}

const Entry kEntries[] = {
    entry(kCore, kMarkA, mark_a, their_core[kMarkA]),
    entry(kCore, kRangeStartA, range_start_a, their_core[kRangeStartA]),
    entry(kCore, kRangeEnd, range_end, their_core[kRangeEnd]),
    entry(kDomain, kCreateA, domain_create_a, their_domain[kCreateA]),
    entry(kDomain, kDestroy, domain_destroy, their_domain[kDestroy]),
    entry(kDomain, kDomainMarkA, domain_mark_a, their_domain[kDomainMarkA]),
    entry(kDomain, kDomainRangeStartA, domain_range_start_a, their_domain[kDomainRangeStartA]),
    entry(kDomain, kDomainRangeEnd, domain_range_end, their_domain[kDomainRangeEnd]),
};

Function* slot_of(GetTable get, const Entry& e) {
  FunctionTable table = nullptr;
  unsigned size = 0;
  return get(e.module, &table, &size) == kSuccess && table && e.id < size ? table[e.id] : nullptr;
}

bool is_asked_for() {
  const char *path = getenv("MSTX_INJECTION_PATH"), *on = getenv("STAGELINE_MSTX");
  return (path && *path) || (on && strcmp(on, "1") == 0);
}

}  // namespace
}  // namespace mstx
}  // namespace slr

using namespace slr;
using namespace slr::mstx;

extern "C" SLR_API int InitInjectionMstx(GetTable get) {
  if (!get || !is_asked_for()) return kFail;
  const int saved_errno = errno;
  const auto next = find_behind("STAGELINE_CHAIN_MSTX", "InitInjectionMstx", InitInjectionMstx);
  const int put = put_entries(
      kEntries, [&](const Entry& e) { return slot_of(get, e); }, [&] { return next && next(get) == kSuccess; });
  errno = saved_errno;
  return put > 0 ? kSuccess : kFail;
}
