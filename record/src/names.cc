// Texts and lanes: small tables in private memory, copied to the hot file so that records found there have names.
#include <string.h>

#include "anchors.h"
#include "device.h"
#include "recorder.h"

namespace slr {

Lock names;
Lane lanes[kMaxLanes];
std::atomic<uint32_t> lane_count{1};

namespace {

constexpr uint32_t kHashSlots = 1 << 17;
constexpr size_t kMaxText = 1000;

char arena[kNameBytes];
uint32_t arena_bytes = 0, name_count = 0;
uint32_t offset_of[kMaxNames];
std::atomic<uint16_t> hashed[kHashSlots];  // set after the text is there; never emptied
std::atomic<uint32_t> is_full{0};

// Eight bytes at a time: injected names are looked up at every range.
uint64_t hash_of(const char* text, size_t size) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t h = size * kOdd, word = 0;
  for (; size >= 8; text += 8, size -= 8) {
    memcpy(&word, text, 8);
    h = (h ^ word) * kOdd;
    h ^= h >> 32;
  }
  word = 0;
  for (size_t i = 0; i < size; ++i) word |= uint64_t{static_cast<uint8_t>(text[i])} << 8 * i;
  h = (h ^ word) * kOdd;
  return h ^ h >> 29;
}

bool is_name(uint16_t id, const char* text, size_t size) {
  const char* entry = arena + offset_of[id];
  uint16_t length;
  memcpy(&length, entry + 2, 2);
  return length == size && memcmp(entry + 4, text, size) == 0;
}

// Its id, or 0 and where it would go. Needs no lock: names are only ever added.
uint16_t find(const char* text, size_t size, uint64_t& at) {
  at = hash_of(text, size) % kHashSlots;
  for (;; at = (at + 1) % kHashSlots) {
    const uint16_t id = hashed[at].load(std::memory_order_acquire);
    if (id == 0 || is_name(id, text, size)) return id;
  }
}

// Under the lock. 0 when the table is full.
uint16_t intern(const char* text, size_t size) {
  uint64_t at = 0;
  if (const uint16_t known = find(text, size, at)) return known;
  if (name_count + 1 >= kMaxNames || arena_bytes + 4 + size > kNameBytes) {
    is_full.store(1, std::memory_order_relaxed);
    return 0;
  }
  const auto id = static_cast<uint16_t>(++name_count), length = static_cast<uint16_t>(size);
  offset_of[id] = arena_bytes;
  memcpy(arena + arena_bytes, &id, 2);
  memcpy(arena + arena_bytes + 2, &length, 2);
  memcpy(arena + arena_bytes + 4, text, size);
  if (state.hot) {
    memcpy(reinterpret_cast<char*>(state.hot) + state.names_at + arena_bytes, arena + arena_bytes, 4 + size);
    state.hot->name_bytes.store(arena_bytes + 4 + static_cast<uint32_t>(size), std::memory_order_release);
  }
  __atomic_store_n(&arena_bytes, arena_bytes + 4 + static_cast<uint32_t>(size), __ATOMIC_RELEASE);
  hashed[at].store(id, std::memory_order_release);
  return id;
}

LaneEntry* hot_lane(uint32_t id) {
  return reinterpret_cast<LaneEntry*>(reinterpret_cast<char*>(state.hot) + state.lanes_at) + id;
}

uint16_t add_lane_locked(const LaneEntry& entry, void* stream) {
  const uint32_t id = lane_count.load(std::memory_order_relaxed);
  if (id >= kMaxLanes) return 0;
  lanes[id].entry = entry;
  lanes[id].stream = stream;
  lanes[id].device.store(nullptr, std::memory_order_relaxed);
  lanes[id].closed.store(0, std::memory_order_relaxed);
  if (state.hot) {
    *hot_lane(id) = entry;
    state.hot->lane_count.store(id + 1, std::memory_order_release);
  }
  lane_count.store(id + 1, std::memory_order_release);
  return static_cast<uint16_t>(id);
}

void set_text(char (&to)[48], const char* text) {
  size_t n = text ? strlen(text) : 0;
  if (n > sizeof to - 1) n = sizeof to - 1;
  while (n > 0 && text[n] && (static_cast<unsigned char>(text[n]) & 0xc0) == 0x80) --n;  // no half letters
  memset(to, 0, sizeof to);
  if (n > 0) memcpy(to, text, n);
}

}  // namespace

uint16_t add_lane(const LaneEntry& entry, void* stream) {
  const Held held(names);
  if (held) return add_lane_locked(entry, stream);
  drop(SLR_DROP_REENTRANT);
  return 0;
}

const char* name_table(uint32_t* bytes) {
  *bytes = __atomic_load_n(&arena_bytes, __ATOMIC_ACQUIRE);
  return arena;
}

void publish_lane(uint16_t lane) {
  if (state.hot) *hot_lane(lane) = lanes[lane].entry;
  lanes_version.fetch_add(1, std::memory_order_release);
}

void publish_names() {
  const Held held(names);
  char* const base = reinterpret_cast<char*>(state.hot);
  memcpy(base + state.names_at, arena, arena_bytes);
  const uint32_t count = lane_count.load(std::memory_order_relaxed);
  for (uint32_t id = 1; id < count; ++id) *hot_lane(id) = lanes[id].entry;
  state.hot->name_bytes.store(arena_bytes, std::memory_order_release);
  state.hot->lane_count.store(count, std::memory_order_release);
}

void name_lane(slr_lane lane, const char* name) {
  if (lane == 0 || lane >= lane_count.load(std::memory_order_acquire) || !name || !*name) return;
  const Held held(names);
  if (!held) return drop(SLR_DROP_REENTRANT);
  set_text(lanes[lane].entry.name, name);
  publish_lane(static_cast<uint16_t>(lane));
}

void name_lane_of_thread(uint32_t thread_id, const char* name) {
  for (uint32_t id = lane_count.load(std::memory_order_acquire); id-- > 1;)
    if (lanes[id].entry.device_kind == SLR_HOST && lanes[id].entry.thread_id == thread_id) return name_lane(id, name);
}

}  // namespace slr

using namespace slr;  // the C functions are not members, or their visibility would be lost

extern "C" {

slr_str slr_intern(const char* text, size_t length) {
  if (!text) return 0;
  if (length > kMaxText) length = kMaxText;
  uint64_t at = 0;
  uint16_t id = find(text, length, at);
  if (id == 0 && !is_full.load(std::memory_order_relaxed)) {
    const Held held(names);
    if (held) id = intern(text, length);
  }
  if (id == 0) drop(SLR_DROP_NAMES);
  return id;
}

slr_lane slr_lane_stream(int device, void* stream, const char* name) {
  if (device <= SLR_HOST || device > SLR_ACL) return 0;
  LaneEntry entry{};
  entry.device_kind = static_cast<uint8_t>(device);
  entry.device = -1;
  set_text(entry.name, name && *name ? name : "stream");
  entry.stream_id = reinterpret_cast<uintptr_t>(stream);
  uint16_t id = 0;
  if (const Held held(names); held) {
    const uint32_t count = lane_count.load(std::memory_order_relaxed);
    for (uint32_t known = 1; known < count; ++known) {
      const Lane& lane = lanes[known];
      if (lane.entry.device_kind == device && lane.stream == stream && lane.closed.load() == 0 && same_device(lane))
        return known;
    }
    id = add_lane_locked(entry, stream);
  } else {
    drop(SLR_DROP_REENTRANT);
  }
  if (id != 0) bind_lane(id);
  return id;
}

slr_lane slr_lane_host(const char* name) {
  LaneEntry entry{};
  entry.device = -1;
  set_text(entry.name, name && *name ? name : "host");
  return add_lane(entry, nullptr);
}

void slr_lane_close(slr_lane lane) {
  if (lane > 0 && lane < lane_count.load(std::memory_order_acquire))
    lanes[lane].closed.store(1, std::memory_order_release);
}

void slr_name_thread(const char* name) {
  if (!is_on() || !name) return;
  Thread* thread = this_thread;
  if (!thread || this_recording != state.recording) thread = acquire_thread();
  if (thread) name_lane(thread->lane, name);
}

}  // extern "C"
