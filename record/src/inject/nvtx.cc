// Listens to NVTX: NVTX_INJECTION64_PATH=libstageline_record.so makes every library of a program that uses NVTX call
// InitializeInjectionNvtx2 at its first range, each with a table of its own.
//
//   program ──nvtxRangePushA──▶ *table[9] = push_a ──▶ injected.h
//                                             └──▶ the tool that was named before us (STAGELINE_CHAIN_NVTX), if any
//
// A tool behind us (behind.h) has handles of its own for domains, strings and ranges; what goes to it is translated.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/behind.h"
#include "inject/injected.h"
#include "inject/nvtx_abi.h"

extern "C" SLR_API int InitializeInjectionNvtx2(slr::nvtx::GetExportTable get);

namespace slr {
namespace nvtx {
namespace {

// Their entries, by our own numbers; set before ours are.
std::atomic<Function> their_core[kCoreIds], their_core2[kCore2Ids], their_cuda, their_cudart;

// A text that a program registered once. Handles are places of this table.
struct Registered {
  slr_str name;
  void* theirs;
};
constexpr uint32_t kMaxRegistered = 1 << 16;
Registered registered[kMaxRegistered];
std::atomic<uint32_t> registered_count{0};

const Registered* registered_of(const void* handle) {
  const auto at = reinterpret_cast<uintptr_t>(handle), first = reinterpret_cast<uintptr_t>(registered);
  const uint32_t count = registered_count.load(std::memory_order_acquire);
  const bool ours = at >= first && at < first + sizeof(Registered) * (count < kMaxRegistered ? count : kMaxRegistered);
  return ours ? &registered[(at - first) / sizeof(Registered)] : nullptr;
}

bool has_message(const Attributes* a) { return a && a->size >= sizeof(Attributes) && a->message; }

slr_str name_of_event(const Attributes* a) {
  if (!has_message(a)) return 0;
  switch (a->message_type) {
    case kAscii: return name_of(static_cast<const char*>(a->message));
    case kUnicode: return name_of(static_cast<const wchar_t*>(a->message));
    case kRegistered: {
      const Registered* text = registered_of(a->message);
      return text ? text->name : 0;
    }
    default: return 0;
  }
}

Domain& default_domain() { return *domain_of(nullptr); }

// The attributes as the tool behind us knows them: with its own handle of the text.
class Translated {
 public:
  explicit Translated(const Attributes* a) : to_(a) {
    if (!has_message(a) || a->message_type != kRegistered) return;
    copy_ = *a;
    const Registered* text = registered_of(a->message);
    copy_.message = text ? text->theirs : nullptr;
    copy_.size = sizeof copy_;  // what a newer client has beyond is left out
    to_ = &copy_;
  }
  const Attributes* get() const { return to_; }

 private:
  Attributes copy_;
  const Attributes* to_;
};
void* theirs(const Domain& domain) { return domain.theirs.load(std::memory_order_acquire); }

template <class... A> uint64_t ask_start(const std::atomic<Function>& entry, A... arguments) {
  const auto next = behind<uint64_t (*)(A...)>(entry);
  return next ? next(arguments...) : 0;
}

void mark_ex(const Attributes* a) {
  if (const auto next = behind<void (*)(const Attributes*)>(their_core[kMarkEx])) next(Translated(a).get());
  mark_injected(default_domain(), name_of_event(a), 0);
}
void mark_a(const char* text) {
  if (const auto next = behind<void (*)(const char*)>(their_core[kMarkA])) next(text);
  mark_injected(default_domain(), name_of(text), 0);
}
void mark_w(const wchar_t* text) {
  if (const auto next = behind<void (*)(const wchar_t*)>(their_core[kMarkW])) next(text);
  mark_injected(default_domain(), name_of(text), 0);
}
uint64_t range_start_ex(const Attributes* a) {
  const uint64_t their = ask_start(their_core[kRangeStartEx], Translated(a).get());
  return joined_id(start_injected(default_domain(), name_of_event(a), 0), their);
}
uint64_t range_start_a(const char* text) {
  const uint64_t their = ask_start(their_core[kRangeStartA], text);
  return joined_id(start_injected(default_domain(), name_of(text), 0), their);
}
uint64_t range_start_w(const wchar_t* text) {
  const uint64_t their = ask_start(their_core[kRangeStartW], text);
  return joined_id(start_injected(default_domain(), name_of(text), 0), their);
}
void range_end(uint64_t id) {
  if (const auto next = behind<void (*)(uint64_t)>(their_core[kRangeEnd])) next(their_id(id));
  end_joined(id);
}
int range_push_ex(const Attributes* a) {
  if (const auto next = behind<int (*)(const Attributes*)>(their_core[kRangePushEx])) next(Translated(a).get());
  return push_injected(default_domain(), name_of_event(a));
}
int range_push_a(const char* text) {
  if (const auto next = behind<int (*)(const char*)>(their_core[kRangePushA])) next(text);
  return push_injected(default_domain(), name_of(text));
}
int range_push_w(const wchar_t* text) {
  if (const auto next = behind<int (*)(const wchar_t*)>(their_core[kRangePushW])) next(text);
  return push_injected(default_domain(), name_of(text));
}
int range_pop() {
  const int depth = pop_injected(default_domain());
  if (const auto next = behind<int (*)()>(their_core[kRangePop])) next();
  return depth;
}
void name_os_thread_a(uint32_t thread, const char* text) {
  if (const auto next = behind<void (*)(uint32_t, const char*)>(their_core[kNameOsThreadA])) next(thread, text);
  if (!text) return;
  const int saved_errno = errno;
  if (thread == static_cast<uint32_t>(syscall(SYS_gettid)) && injection_is_on()) slr_name_thread(text);
  else name_lane_of_thread(thread, text);
  errno = saved_errno;
}

void domain_mark_ex(void* handle, const Attributes* a) {
  Domain& domain = *domain_of(handle);
  if (const auto next = behind<void (*)(void*, const Attributes*)>(their_core2[kDomainMarkEx]))
    next(theirs(domain), Translated(a).get());
  mark_injected(domain, name_of_event(a), 0);
}
uint64_t domain_range_start_ex(void* handle, const Attributes* a) {
  Domain& domain = *domain_of(handle);
  const uint64_t their = ask_start(their_core2[kDomainRangeStartEx], theirs(domain), Translated(a).get());
  return joined_id(start_injected(domain, name_of_event(a), 0), their);
}
void domain_range_end(void* handle, uint64_t id) {
  if (const auto next = behind<void (*)(void*, uint64_t)>(their_core2[kDomainRangeEnd]))
    next(theirs(*domain_of(handle)), their_id(id));
  end_joined(id);
}
int domain_range_push_ex(void* handle, const Attributes* a) {
  Domain& domain = *domain_of(handle);
  if (const auto next = behind<int (*)(void*, const Attributes*)>(their_core2[kDomainRangePushEx]))
    next(theirs(domain), Translated(a).get());
  return push_injected(domain, name_of_event(a));
}
int domain_range_pop(void* handle) {
  Domain& domain = *domain_of(handle);
  const int depth = pop_injected(domain);
  if (const auto next = behind<int (*)(void*)>(their_core2[kDomainRangePop])) next(theirs(domain));
  return depth;
}
void* keep_registered(slr_str name, void* their) {
  uint32_t place = registered_count.load(std::memory_order_relaxed);
  do {
    if (place >= kMaxRegistered) return &registered[kMaxRegistered - 1];
  } while (!registered_count.compare_exchange_weak(place, place + 1, std::memory_order_acq_rel));
  registered[place] = {name, their};
  return &registered[place];
}
void* register_string_a(void* handle, const char* text) {
  const auto next = behind<void* (*)(void*, const char*)>(their_core2[kDomainRegisterStringA]);
  return keep_registered(name_of(text), next ? next(theirs(*domain_of(handle)), text) : nullptr);
}
void* register_string_w(void* handle, const wchar_t* text) {
  const auto next = behind<void* (*)(void*, const wchar_t*)>(their_core2[kDomainRegisterStringW]);
  return keep_registered(name_of(text), next ? next(theirs(*domain_of(handle)), text) : nullptr);
}
void* domain_create_a(const char* name) {
  Domain* domain = domain_named(name);
  if (const auto next = behind<void* (*)(const char*)>(their_core2[kDomainCreateA]); next && !theirs(*domain))
    domain->theirs.store(next(name), std::memory_order_release);
  return domain;
}
void* domain_create_w(const wchar_t* name) {
  char text[sizeof Domain::name];
  size_t n = 0;
  for (; name && name[n] && n + 1 < sizeof text; ++n) text[n] = name[n] < 0x80 ? static_cast<char>(name[n]) : '?';
  text[n] = '\0';
  Domain* domain = domain_named(text);
  if (const auto next = behind<void* (*)(const wchar_t*)>(their_core2[kDomainCreateW]); next && !theirs(*domain))
    domain->theirs.store(next(name), std::memory_order_release);
  return domain;
}
// Ranges of it may still be open, and its name may come again: ours stays.
void domain_destroy(void* handle) {
  const auto next = behind<void (*)(void*)>(their_core2[kDomainDestroy]);
  if (next) next(domain_of(handle)->theirs.exchange(nullptr));
}

void name_stream(void* stream, const char* text) {
  if (text && injection_is_on()) name_lane(slr_lane_stream(SLR_CUDA, stream, text), text);
}
void name_cu_stream(void* stream, const char* text) {
  if (const auto next = behind<void (*)(void*, const char*)>(their_cuda)) next(stream, text);
  name_stream(stream, text);
}
void name_cuda_stream(void* stream, const char* text) {
  if (const auto next = behind<void (*)(void*, const char*)>(their_cudart)) next(stream, text);
  name_stream(stream, text);
}

const Entry kEntries[] = {
    entry(kCore, kMarkEx, mark_ex, their_core[kMarkEx]),
    entry(kCore, kMarkA, mark_a, their_core[kMarkA]),
    entry(kCore, kMarkW, mark_w, their_core[kMarkW]),
    entry(kCore, kRangeStartEx, range_start_ex, their_core[kRangeStartEx]),
    entry(kCore, kRangeStartA, range_start_a, their_core[kRangeStartA]),
    entry(kCore, kRangeStartW, range_start_w, their_core[kRangeStartW]),
    entry(kCore, kRangeEnd, range_end, their_core[kRangeEnd]),
    entry(kCore, kRangePushEx, range_push_ex, their_core[kRangePushEx]),
    entry(kCore, kRangePushA, range_push_a, their_core[kRangePushA]),
    entry(kCore, kRangePushW, range_push_w, their_core[kRangePushW]),
    entry(kCore, kRangePop, range_pop, their_core[kRangePop]),
    entry(kCore, kNameOsThreadA, name_os_thread_a, their_core[kNameOsThreadA]),
    entry(kCore2, kDomainMarkEx, domain_mark_ex, their_core2[kDomainMarkEx]),
    entry(kCore2, kDomainRangeStartEx, domain_range_start_ex, their_core2[kDomainRangeStartEx]),
    entry(kCore2, kDomainRangeEnd, domain_range_end, their_core2[kDomainRangeEnd]),
    entry(kCore2, kDomainRangePushEx, domain_range_push_ex, their_core2[kDomainRangePushEx]),
    entry(kCore2, kDomainRangePop, domain_range_pop, their_core2[kDomainRangePop]),
    entry(kCore2, kDomainRegisterStringA, register_string_a, their_core2[kDomainRegisterStringA]),
    entry(kCore2, kDomainRegisterStringW, register_string_w, their_core2[kDomainRegisterStringW]),
    entry(kCore2, kDomainCreateA, domain_create_a, their_core2[kDomainCreateA]),
    entry(kCore2, kDomainCreateW, domain_create_w, their_core2[kDomainCreateW]),
    entry(kCore2, kDomainDestroy, domain_destroy, their_core2[kDomainDestroy]),
    entry(kCuda, kNameCuStreamA, name_cu_stream, their_cuda),
    entry(kCudaRt, kNameCudaStreamA, name_cuda_stream, their_cudart),
};

// Where the program keeps the entry's pointer; nullptr: an NVTX of another size has none.
Function* slot_of(const Callbacks& callbacks, const Entry& e) {
  FunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks.get_module_function_table(e.module, &table, &size) || !table || e.id >= size) return nullptr;
  return table[e.id];
}

}  // namespace
}  // namespace nvtx
}  // namespace slr

using namespace slr;
using namespace slr::nvtx;

int InitializeInjectionNvtx2(GetExportTable get) {
  const int saved_errno = errno;
  const auto* callbacks = static_cast<const Callbacks*>(get ? get(kCallbacks) : nullptr);
  if (!callbacks || callbacks->struct_size < sizeof(Callbacks) || !callbacks->get_module_function_table) return 0;
  const auto next = find_behind("STAGELINE_CHAIN_NVTX", "InitializeInjectionNvtx2", InitializeInjectionNvtx2);
  const int put = put_entries(
      kEntries, [&](const Entry& e) { return slot_of(*callbacks, e); }, [&] { return next && next(get) != 0; });
  const auto* version = static_cast<const VersionInfo*>(get(kVersionInfo));
  if (version && version->struct_size >= sizeof(VersionInfo) && version->set_injection_version)
    version->set_injection_version(SLR_VERSION);
  errno = saved_errno;
  return put > 0;
}
