#include "inject/behind.h"

#include <dlfcn.h>
#include <stdlib.h>

namespace slr {

std::atomic<bool> some_behind{false};

namespace {

constexpr uint64_t kOnlyTheirs = uint64_t{1} << 63;
std::atomic<uint64_t> their_ids[1 << 16];  // by the low 16 bits of ours: ring and slot

}  // namespace

void* symbol_behind(const char* variable, const char* name) {
  const char* path = getenv(variable);
  void* library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  return library ? dlsym(library, name) : nullptr;
}

uint64_t joined_id(slr_range ours, uint64_t their) {
  if (ours == 0) return their ? their | kOnlyTheirs : 0;
  if (some_behind.load(std::memory_order_relaxed)) their_ids[ours & 0xffff].store(their, std::memory_order_relaxed);
  return ours;
}

uint64_t their_id(uint64_t id) {
  return id & kOnlyTheirs ? id & ~kOnlyTheirs : their_ids[id & 0xffff].load(std::memory_order_relaxed);
}

void end_joined(uint64_t id) {
  if (!(id & kOnlyTheirs)) slr_end(id);
}

}  // namespace slr
