// The NCCL profiler plugin behind the recorder's (STAGELINE_CHAIN_NCCL), which was in NCCL_PROFILER_PLUGIN before. It
// receives all that it would receive without the recorder, with its own contexts and handles.
//
//   NCCL ──start(context, event)──▶ ours,  if we asked for that type  ─┬▶ Pair {ours, theirs} ──▶ NCCL's handle
//                                └▶ theirs, if it asked for that type ─┘
//
// Versions are not translated: it must have the table that NCCL took of us, or is not called, which stderr says once.
// Nothing here is in the way where no plugin is behind us.
#pragma once

#include <atomic>
#include <cstdint>

#include "inject/behind.h"
#include "inject/nccl_abi.h"

namespace slr::nccl {

// A table of any version: they differ in init's and start's arguments only.
struct AnyPlugin {
  const char* name;
  Function init;
  int (*start)(void* context, void** handle, void* event);
  int (*stop)(void* handle);
  int (*record_state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};
static_assert(sizeof(AnyPlugin) == sizeof(Plugin<InitV1, EventV1>));

// NCCL's context of a communicator that both plugins see.
struct Context {
  std::atomic<uint32_t> is_used;
  const AnyPlugin* plugin;
  void *ours, *theirs;
  int *mask, our_mask, their_mask;  // NCCL's: what either of us wants
};
struct Pair {
  std::atomic<uint32_t> state;
  bool is_leaf;  // nothing names it as a parent: its place is free when it stops
  const AnyPlugin* plugin;
  void *ours, *theirs;
};

const AnyPlugin* plugin_behind(int version);
Context* take_context(const AnyPlugin* plugin);
Context* context_at(void* context);  // nullptr: not one of ours
void merge_masks(Context& context);
Pair* pair_at(void* handle);
// nullptr: more operations are open than there is room for; then neither plugin sees them.
Pair* take_pair(const AnyPlugin* plugin, void* ours, void* theirs, bool is_leaf);
void give_pair(Pair& pair);

// Calls ours(&context, &mask), and theirs(init, &context, &mask) where there is one.
template <class Init, class Ours, class Theirs>
int init_both(int version, void** context, int* mask, Ours ours, Theirs theirs) {
  const AnyPlugin* plugin = context && mask ? plugin_behind(version) : nullptr;
  Context* both = plugin ? take_context(plugin) : nullptr;
  if (!both) return ours(context, mask);
  const int result = ours(&both->ours, &both->our_mask);
  if (theirs(reinterpret_cast<Init>(plugin->init), &both->theirs, &both->their_mask) != 0) {
    both->is_used.store(0);
    return ours(context, mask);
  }
  both->mask = mask;
  *mask = both->our_mask | both->their_mask;
  *context = both;
  return result;
}

template <class EventOf>
int start_both(void* context, void** handle, EventOf* event, int (*ours)(void*, void**, EventOf*)) {
  Context* both = context_at(context);
  if (!both || !handle || !event) return ours(context, handle, event);
  const auto type = static_cast<uint64_t>(event->type);
  const auto is_wanted = [&](int mask) { return (type & static_cast<uint64_t>(static_cast<uint32_t>(mask))) != 0; };
  void *const parent = event->parent, *own = nullptr, *their = nullptr;
  const Pair* parents = pair_at(parent);
  if (is_wanted(both->our_mask)) {
    event->parent = parents ? parents->ours : parent;
    ours(both->ours, &own, event);
  }
  if (is_wanted(both->their_mask)) {
    event->parent = parents ? parents->theirs : parent;
    if (both->plugin->start(both->theirs, &their, event) != 0) their = nullptr;
  }
  event->parent = parent;
  merge_masks(*both);  // what a captured graph makes us give up
  const bool is_leaf = type == kKernelCh || type == kProxyCtrl || type == kNetPlugin;
  Pair* pair = own || their ? take_pair(both->plugin, own, their, is_leaf) : nullptr;
  *handle = pair;
  if (!pair && own) *handle = own;
  if (!pair && their) both->plugin->stop(their);
  return 0;
}

}  // namespace slr::nccl
