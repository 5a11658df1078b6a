#include "inject/nccl_behind.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace slr::nccl {
namespace {

constexpr uint32_t kMaxContexts = 256, kMaxPairs = 1 << 16, kTries = 64, kVersions = 16;
enum PairState : uint32_t { kFree, kTaking, kOpen, kStopped };

Context contexts[kMaxContexts];
Pair pairs[kMaxPairs];
std::atomic<uint32_t> next_pair{0};

template <class T, size_t N> T* place_in(T (&table)[N], void* handle) {
  const auto at = reinterpret_cast<uintptr_t>(handle), first = reinterpret_cast<uintptr_t>(table);
  return at >= first && at < first + sizeof table && (at - first) % sizeof(T) == 0 ? static_cast<T*>(handle) : nullptr;
}

// As NCCL looks for it: the name itself, then libnccl-profiler-NAME.so.
void* open_behind(const char* name) {
  if (void* found = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return found;
  char file[512];
  snprintf(file, sizeof file, "libnccl-profiler-%s.so", name);
  return strchr(name, '/') ? nullptr : dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

void say(const char* name, const char* what, int version) {
  char text[800];
  const int n =
      version > 0
          ? snprintf(text, sizeof text,
                     "stageline: NCCL's profiler plugin %.500s has no ncclProfiler_v%d: it is not called\n", name,
                     version)
          : snprintf(text, sizeof text, "stageline: NCCL's profiler plugin %.500s is not called: %.200s\n", name, what);
  if (n > 0 && ::write(2, text, static_cast<size_t>(n)) < 0) return;
}

const AnyPlugin* find_plugin(int version) {
  const char* name = getenv("STAGELINE_CHAIN_NCCL");
  if (!name || !*name || strcmp(name, "none") == 0) return nullptr;
  static void* library = nullptr;
  static bool looked = false;
  if (!looked) {
    looked = true;
    library = open_behind(name);
    const char* why = library ? nullptr : dlerror();
    if (!library) say(name, why ? why : "it cannot be loaded", 0);
  }
  if (!library) return nullptr;
  char symbol[32];
  snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", version);
  const auto* found = static_cast<const AnyPlugin*>(dlsym(library, symbol));
  Dl_info here, there;
  if (found && dladdr(&pairs, &here) && dladdr(found, &there) && here.dli_fbase == there.dli_fbase) return nullptr;
  if (!found) say(name, "", version);
  return found;
}

}  // namespace

const AnyPlugin* plugin_behind(int version) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static const AnyPlugin* known[kVersions];
  static bool is_known[kVersions];
  const int saved_errno = errno;
  pthread_mutex_lock(&mutex);
  if (!is_known[version]) {
    is_known[version] = true;
    known[version] = find_plugin(version);
  }
  const AnyPlugin* found = known[version];
  pthread_mutex_unlock(&mutex);
  errno = saved_errno;
  return found;
}

Context* take_context(const AnyPlugin* plugin) {
  for (Context& c : contexts) {
    uint32_t free = 0;
    if (!c.is_used.compare_exchange_strong(free, 1, std::memory_order_acq_rel)) continue;
    c.plugin = plugin;
    c.ours = c.theirs = nullptr;
    c.mask = nullptr;
    c.our_mask = c.their_mask = 0;
    return &c;
  }
  return nullptr;
}

Context* context_at(void* context) {
  Context* found = place_in(contexts, context);
  return found && found->is_used.load(std::memory_order_acquire) ? found : nullptr;
}

void merge_masks(Context& c) {
  const int wanted = __atomic_load_n(&c.our_mask, __ATOMIC_RELAXED) | __atomic_load_n(&c.their_mask, __ATOMIC_RELAXED);
  if (c.mask && __atomic_load_n(c.mask, __ATOMIC_RELAXED) != wanted) __atomic_store_n(c.mask, wanted, __ATOMIC_RELAXED);
}

Pair* pair_at(void* handle) {
  Pair* found = place_in(pairs, handle);
  return found && found->state.load(std::memory_order_acquire) >= kOpen ? found : nullptr;
}

// The oldest of those that have stopped goes first: children of an operation come soon after it.
Pair* take_pair(const AnyPlugin* plugin, void* ours, void* theirs, bool is_leaf) {
  for (uint32_t i = 0; i < kTries; ++i) {
    Pair& p = pairs[next_pair.fetch_add(1, std::memory_order_relaxed) % kMaxPairs];
    uint32_t seen = p.state.load(std::memory_order_acquire);
    if ((seen != kFree && seen != kStopped) ||
        !p.state.compare_exchange_strong(seen, kTaking, std::memory_order_acq_rel))
      continue;
    p.is_leaf = is_leaf;
    p.plugin = plugin;
    p.ours = ours;
    p.theirs = theirs;
    p.state.store(kOpen, std::memory_order_release);
    return &p;
  }
  return nullptr;
}

void give_pair(Pair& p) { p.state.store(p.is_leaf ? kFree : kStopped, std::memory_order_release); }

}  // namespace slr::nccl
