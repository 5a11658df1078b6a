#include "inject/injected.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "device.h"
#include "driver.h"

namespace slr {
namespace {

constexpr size_t kMaxText = 1000;
constexpr uint32_t kDefaultDepth = 2;
constexpr uint32_t kStreamsOfThread = 8;

Domain domains[kMaxDomains];  // by tag; 0 is not a domain
std::atomic<uint32_t> domain_count{0};
Lock lock;  // of new domains

// Lanes that a thread has used, by ring: only the ring's thread looks at them.
struct ThreadLanes {
  uint32_t generation;  // of the thread that they are
  uint16_t of_domain[kMaxDomains];
  struct {
    void *context, *stream;
    uint16_t lane;
  } streams[kStreamsOfThread];
  uint32_t next_stream;
};
ThreadLanes thread_lanes[kMaxRings];

// torch's ABI-stable C shim: the stream that the calling thread launches to.
using CurrentStream = int (*)(int32_t device, void** stream);
std::atomic<CurrentStream> current_stream{nullptr};
std::atomic<uint8_t> stream_kind{SLR_HOST};
std::atomic<uint32_t> stream_tries{0};

CurrentStream find_current_stream() {
  if (CurrentStream found = current_stream.load(std::memory_order_acquire)) return found;
  // In a program without torch the loader searches the disk, so the pauses between tries grow.
  const uint32_t tries = stream_tries.fetch_add(1, std::memory_order_relaxed);
  if ((tries & (tries - 1)) != 0) return nullptr;
  const SignalsOff off;  // the loader has locks
  const int saved_errno = errno;
  for (const uint8_t kind : {SLR_CUDA, SLR_HIP}) {
    void* library = dlopen(kind == SLR_CUDA ? "libtorch_cuda.so" : "libtorch_hip.so", RTLD_NOW | RTLD_NOLOAD);
    if (!library) continue;
    const auto found = reinterpret_cast<CurrentStream>(dlsym(library, "aoti_torch_get_current_cuda_stream"));
    if (!found) continue;
    stream_kind.store(kind, std::memory_order_relaxed);
    current_stream.store(found, std::memory_order_release);
    break;
  }
  errno = saved_errno;
  return current_stream.load(std::memory_order_acquire);
}

ThreadLanes& lanes_of(const Thread& thread) {
  ThreadLanes& own = thread_lanes[thread.index];
  if (own.generation != thread.generation) {
    memset(static_cast<void*>(&own), 0, sizeof own);
    own.generation = thread.generation;
  }
  return own;
}

uint16_t kept_lane(ThreadLanes& own, uint8_t kind, void* context, void* stream, const char* name) {
  for (const auto& known : own.streams)
    if (known.lane != 0 && known.stream == stream && known.context == context &&
        lanes[known.lane].closed.load(std::memory_order_relaxed) == 0)
      return known.lane;
  const auto lane = static_cast<uint16_t>(slr_lane_stream(kind, stream, name));
  own.streams[own.next_stream++ % kStreamsOfThread] = {context, stream, lane};
  return lane;
}

// The lane of torch's current stream, or 0: no torch, no device in use by this thread.
uint16_t current_stream_lane(ThreadLanes& own) {
  const CurrentStream ask = find_current_stream();
  if (!ask) return 0;
  const uint8_t kind = stream_kind.load(std::memory_order_relaxed);
  const Driver* driver = loaded_driver(kind);
  void *context = nullptr, *stream = nullptr;
  // Without a context torch's answer would make one.
  if (!driver || driver->current(&context) != 0 || !context || ask(-1, &stream) != 0) return 0;
  return kept_lane(own, kind, context, stream, stream ? "torch stream" : "torch default stream");
}

uint16_t host_lane(const Thread& thread, ThreadLanes& own, uint16_t tag) {
  if (tag <= 1) return thread.lane;
  if (own.of_domain[tag] == 0) {
    LaneEntry entry{};
    entry.device = -1;
    entry.thread_id = static_cast<uint32_t>(syscall(SYS_gettid));
    snprintf(entry.name, sizeof entry.name, "%.36s %u", domains[tag].name, entry.thread_id);
    const uint16_t lane = add_lane(entry, nullptr);
    own.of_domain[tag] = lane != 0 ? lane : thread.lane;
  }
  return own.of_domain[tag];
}

uint16_t lane_at(const Thread& thread, uint16_t tag, uint32_t depth) {
  const Domain& domain = domains[tag];
  ThreadLanes& own = lanes_of(thread);
  if (domain.on_device && depth < domain.max_depth)
    if (const uint16_t lane = current_stream_lane(own)) return lane;
  return host_lane(thread, own, tag);
}

// Returns true if a list with commas between holds the name.
bool lists(const char* list, const char* name) {
  const size_t size = strlen(name);
  while (list && *list) {
    const size_t n = strcspn(list, ",");
    if (n == size && memcmp(list, name, n) == 0) return true;
    list += n + (list[n] == ',');
  }
  return false;
}

// Under the lock. Domain 1 is the default one.
Domain* make_domain(const char* name) {
  const uint32_t count = domain_count.load(std::memory_order_relaxed);
  const uint32_t tag = count + 1;
  if (tag >= kMaxDomains) return &domains[kMaxDomains - 1];
  Domain& d = domains[tag];
  d.tag = static_cast<uint16_t>(tag);
  snprintf(d.name, sizeof d.name, "%s", name);
  const char* depth = getenv("STAGELINE_NVTX_DEPTH");
  const bool said = tag != 1 && lists(getenv("STAGELINE_NVTX_DOMAINS"), name);
  d.on_device = tag == 1 || said || strcmp(name, "pp") == 0;
  const long limit = depth && *depth ? strtol(depth, nullptr, 10) : kDefaultDepth;
  d.max_depth = limit < 0 ? 0 : limit > kMaxOpen || tag != 1 ? kMaxOpen : static_cast<uint32_t>(limit);
  domain_count.store(tag, std::memory_order_release);
  return &d;
}

}  // namespace

bool injection_is_on() {
  if (__builtin_expect(is_on(), 1)) return true;
  enum { kCold, kStarting, kTried };
  static std::atomic<int> phase{kCold};
  int cold = kCold;
  // Another one may begin it while this call goes without a record rather than wait.
  if (state.recording != 0 || !phase.compare_exchange_strong(cold, kStarting)) return false;
  slr_init(nullptr);
  phase.store(kTried);
  return is_on();
}

Domain* domain_named(const char* name) {
  if (!name) name = "";
  char text[sizeof Domain::name];
  snprintf(text, sizeof text, "%s", name);
  const int saved_errno = errno;
  const Held held(lock);
  if (!held) return &domains[kMaxDomains - 1];
  if (domain_count.load(std::memory_order_relaxed) == 0) make_domain("");
  const uint32_t count = domain_count.load(std::memory_order_relaxed);
  Domain* found = nullptr;
  for (uint32_t tag = 1; tag <= count && !found; ++tag)
    if (strcmp(domains[tag].name, text) == 0) found = &domains[tag];
  if (!found) found = make_domain(text);
  errno = saved_errno;
  return found;
}

Domain* domain_of(const void* handle) {
  const auto* domain = static_cast<const Domain*>(handle);
  const auto at = reinterpret_cast<uintptr_t>(handle), first = reinterpret_cast<uintptr_t>(&domains[1]);
  if (at >= first && at < reinterpret_cast<uintptr_t>(domains + kMaxDomains) && (at - first) % sizeof *domain == 0)
    return &domains[(at - first) / sizeof *domain + 1];
  return domain_count.load(std::memory_order_acquire) != 0 ? &domains[1] : domain_named("");
}

slr_str name_of(const char* text) { return text ? slr_intern(text, strnlen(text, kMaxText)) : 0; }

slr_str name_of(const wchar_t* text) {
  if (!text) return 0;
  char utf8[kMaxText + 4];
  size_t n = 0;
  for (; *text && n + 4 <= kMaxText; ++text) {
    const auto c = static_cast<uint32_t>(*text);
    const auto put = [&](uint32_t byte) { utf8[n++] = static_cast<char>(byte); };
    if (c < 0x80) put(c);
    else if (c < 0x800) put(0xc0 | c >> 6), put(0x80 | (c & 0x3f));
    else if (c < 0x10000) put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 0x3f)), put(0x80 | (c & 0x3f));
    else if (c < 0x110000)
      put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 0x3f)), put(0x80 | (c >> 6 & 0x3f)), put(0x80 | (c & 0x3f));
    else put('?');
  }
  return slr_intern(utf8, n);
}

int push_injected(Domain& domain, slr_str name) {
  return injection_is_on() ? push_tagged(domain.tag, name, lane_at) : kNotTracked;
}
int pop_injected(Domain& domain) { return is_on() ? pop_tagged(domain.tag) : kNotTracked; }

slr_lane lane_of_stream(uint8_t kind, void* stream, const char* name) {
  if (!stream || !injection_is_on()) return 0;
  Thread* thread = this_thread;
  if (!thread || this_recording != state.recording || thread->busy) return slr_lane_stream(kind, stream, name);
  return kept_lane(lanes_of(*thread), kind, nullptr, stream, name);
}

slr_range start_injected(Domain& domain, slr_str name, slr_lane lane) {
  return injection_is_on() ? begin_tagged(domain.tag, name, lane, lane_at) : 0;
}

void mark_injected(Domain& domain, slr_str name, slr_lane lane) {
  if (injection_is_on()) mark_tagged(domain.tag, name, lane, lane_at);
}

}  // namespace slr
