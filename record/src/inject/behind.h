// The tool behind us: one that a variable named before `stageline record` put this library there. NVTX and mstx have
// the same shape, a table of pointers that the program calls through and the tool fills.
//
//   program ──call──▶ *slot = ours ──▶ recorded
//                              └──────▶ theirs, if it had put something there
//
// Entries that it leaves as they were are not called: they are NVTX's or mstx's own, which would come back to us.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "stageline_record.h"

namespace slr {

using Function = void (*)();

struct Entry {
  uint32_t module, id;
  Function ours;
  std::atomic<Function>* theirs;
};
template <class F> Entry entry(uint32_t module, uint32_t id, F function, std::atomic<Function>& their) {
  return {module, id, reinterpret_cast<Function>(function), &their};
}

// Some tool behind us took an entry.
extern std::atomic<bool> some_behind;

// Their function of an entry, to be called as F; nullptr where there is none.
template <class F> F behind(const std::atomic<Function>& entry) {
  return some_behind.load(std::memory_order_relaxed) ? reinterpret_cast<F>(entry.load(std::memory_order_acquire))
                                                     : nullptr;
}

// A function of the library that a variable names; nullptr: there is none.
void* symbol_behind(const char* variable, const char* name);
// The same, which is not `ours`: the variable may name this library.
template <class F> F find_behind(const char* variable, const char* name, F ours) {
  const auto found = reinterpret_cast<F>(symbol_behind(variable, name));
  return found == ours ? nullptr : found;
}

// Puts our entries where slot_of(entry) says that the program keeps its pointers (nullptr: it has no such), after
// attach_behind() let the other tool do the same. Returns how many there were.
template <size_t N, class SlotOf, class Attach>
int put_entries(const Entry (&entries)[N], SlotOf slot_of, Attach attach_behind) {
  // One after another: several libraries of a program may make their first call at once.
  static pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&attaching);
  Function before[N];
  for (size_t i = 0; i < N; ++i) {
    Function* slot = slot_of(entries[i]);
    before[i] = slot ? *slot : nullptr;
  }
  const bool attached = attach_behind();
  int put = 0;
  for (size_t i = 0; i < N; ++i) {
    Function* slot = slot_of(entries[i]);
    if (!slot) continue;
    if (attached && *slot && *slot != before[i]) {
      entries[i].theirs->store(*slot, std::memory_order_release);
      some_behind.store(true, std::memory_order_release);
    }
    *slot = entries[i].ours;
    ++put;
  }
  pthread_mutex_unlock(&attaching);
  return put;
}

// Ids of ranges that programs get: ours, with theirs kept along with it. Where only they have one, its top bit is set.
uint64_t joined_id(slr_range ours, uint64_t their);
uint64_t their_id(uint64_t id);
// Ends ours.
void end_joined(uint64_t id);

}  // namespace slr
