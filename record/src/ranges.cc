// The hot path: from a call to 32 bytes in the calling thread's ring.
//
// A ring has one producer (its thread) and one consumer (the writer). Records are stored first and counted after
// (release), so that a process killed at any instruction leaves only whole ones. Open ranges are in the same mapped
// memory: pushes on a stack, ranges that other threads may end in slots whose state is claimed before it is read.
//
// A signal handler that interrupts a call on its own thread would meet a half-made record: `busy` keeps it out, and
// that is counted. Nothing here allocates, locks, waits or makes a system call, except a thread's first record.
#include <string.h>

#include "clock.h"
#include "device.h"
#include "recorder.h"

namespace slr {

thread_local Thread* this_thread = nullptr;
thread_local uint32_t this_recording = 0;
State state;

namespace {
Control never_on{};
}
std::atomic<Control*> control{&never_on};

void drop(slr_drop reason, uint64_t count) {
  if (state.hot && is_on()) state.hot->drops[reason].fetch_add(count, std::memory_order_relaxed);
}

namespace {

// When steps began, for ranges whose time is found out later. Callers of slr_step write it, one at a time.
constexpr uint32_t kKeptSteps = 256;
struct StepBegin {
  std::atomic<uint64_t> ticks;
  std::atomic<int32_t> step;
};
StepBegin steps[kKeptSteps];
std::atomic<uint32_t> step_count{0};

// The calling thread with its ring, for the length of one call. False where nothing is to be recorded.
class Call {
 public:
  Call() {
    if (__builtin_expect(!is_on(), 0)) return;
    Thread* thread = this_thread;
    if (__builtin_expect(!thread || this_recording != state.recording, 0)) {
      thread = acquire_thread();
      if (!thread) return;
    }
    if (__builtin_expect(thread->busy, 0)) {
      drop(SLR_DROP_REENTRANT);
      return;
    }
    thread->busy = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_ = thread;
  }
  ~Call() {
    if (!thread_) return;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_->busy = 0;
  }
  Call(const Call&) = delete;
  explicit operator bool() const { return thread_ != nullptr; }
  Thread* operator->() const { return thread_; }
  Thread* get() const { return thread_; }

 private:
  Thread* thread_ = nullptr;
};

// The writer has read the line: to have it is not enough, it must be ours alone. Compilers make a plain prefetch of
// __builtin_prefetch(…, 1) for processors in general.
inline void prefetch_to_write(const void* at) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(at)));
#else
  __builtin_prefetch(at, 1);
#endif
}

bool emit(Thread* t, const Record& record, const Extra* extra) {
  const uint32_t mask = state.ring_records - 1;
  const uint64_t need = extra ? 2 : 1, head = t->head;
  if (__builtin_expect(head + need - t->known_tail > mask + 1, 0)) {
    t->known_tail = t->ring->tail.load(std::memory_order_acquire);
    if (head + need - t->known_tail > mask + 1) {
      t->ring->dropped.store(t->ring->dropped.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return false;
    }
  }
  memcpy(&t->records[head & mask], &record, sizeof record);
  if (extra) memcpy(&t->records[(head + 1) & mask], extra, sizeof *extra);
  // The next page's first line is fetched before it is needed: one record in 128 would wait for it.
  prefetch_to_write(&t->records[(head + 64) & mask]);
  t->head = head + need;
  t->ring->head.store(head + need, std::memory_order_release);
  if (extra) t->ring->doubles.store(t->ring->doubles.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return true;
}

bool is_lane(slr_lane lane) { return lane < lane_count.load(std::memory_order_acquire); }

// Fills everything but the times. True when the record needs its Extra.
bool describe(const Thread* t, slr_lane lane, const slr_job* job, Record& r, Extra& e) {
  r.lane = lane == 0 || !is_lane(lane) ? t->lane : static_cast<uint16_t>(lane);
  r.type = kRange;
  r.step = state.step.load(std::memory_order_relaxed);
  r.end_ticks = 0;
  e.start_event = e.end_event = kNoEvent;
  e.bytes = e.sequence = -1;
  e.peer = -1;
  e.stage = -1;
  e.tag = 0;
  if (!job || job->size < sizeof(slr_job)) {
    r.name = 0;
    r.kind = SLR_USER;
    r.chunk = -1;
    r.micro_batch = -1;
    return false;
  }
  r.name = static_cast<uint16_t>(job->name < kMaxNames ? job->name : 0);
  r.kind = static_cast<uint8_t>(job->kind <= SLR_LOAD ? job->kind : 0u);
  r.chunk = static_cast<int16_t>(job->chunk < 0 || job->chunk > INT16_MAX ? -1 : job->chunk);
  r.micro_batch = job->micro_batch < 0 ? -1 : job->micro_batch;
  e.bytes = job->bytes;
  e.sequence = job->sequence;
  e.peer = job->peer;
  e.stage = static_cast<int16_t>(job->stage < 0 || job->stage > INT16_MAX ? -1 : job->stage);
  return job->bytes >= 0 || job->sequence >= 0 || job->peer >= 0 || job->stage >= 0;
}

// The device's part of a begin. Returns whether the record needs its Extra for it.
bool stamp_start(Record& r, Extra& e, uint32_t depth) {
  const uint16_t lane = r.lane % kMaxLanes;  // the record is in the mapped file
  if (lanes[lane].entry.device_kind == SLR_HOST) return false;
  e.start_event = stamp(lane, depth);
  r.type |= e.start_event == kNoEvent ? kNoDeviceTime : kOnDevice;
  return e.start_event != kNoEvent;
}

// The device's part of an end.
void stamp_end(Record& r, Extra& e) {
  if (!(r.type & kOnDevice)) return;
  e.end_event = stamp(r.lane % kMaxLanes, 0);
  if (e.end_event != kNoEvent) return;
  release_event(e.start_event);
  e.start_event = kNoEvent;
  r.type = static_cast<uint8_t>((r.type & ~kOnDevice) | kNoDeviceTime);
}

void finish(Thread* t, Record& r, Extra& e) {
  if (emit(t, r, r.type & kHasExtra ? &e : nullptr)) return;
  release_event(e.start_event);
  release_event(e.end_event);
}

constexpr uint64_t kFree = 0, kIsOpen = 1, kClosing = 2;  // phases of OpenSlot::state, in the bits below its generation
uint64_t handle_of(uint64_t generation, uint32_t ring, uint32_t slot) {
  return (generation & ((uint64_t{1} << 40) - 1)) << 24 | static_cast<uint64_t>(state.recording & 0xff) << 16 |
         ring << 6 | slot;
}

slr_range begin(Thread* t, slr_lane lane, const slr_job* job, uint32_t shared_event, uint64_t at) {
  for (uint32_t tries = 0; tries < kMaxOpen; ++tries) {
    const uint32_t slot = t->next_slot++ % kMaxOpen;
    OpenSlot& open = t->ring->slots[slot];
    const uint64_t was = open.state.load(std::memory_order_acquire);
    if ((was & 3) != kFree) continue;
    OpenRange& range = open.range;
    bool extra = describe(t, lane, job, range.record, range.extra);
    if (shared_event != kNoEvent) {
      range.extra.start_event = shared_event;
      range.record.type |= kOnDevice;
      extra = true;
    } else {
      extra |= stamp_start(range.record, range.extra, 0);
    }
    if (extra) range.record.type |= kHasExtra;
    range.record.start_ticks = at ? at : now_ticks();
    const uint64_t generation = (was >> 2) + 1;
    open.state.store(generation << 2 | kIsOpen, std::memory_order_release);
    return handle_of(generation, t->index, slot);
  }
  drop(SLR_DROP_TOO_DEEP);
  release_event(shared_event);
  return 0;
}

// Claims the range and copies it, so that it can be ended once. False when it was, or is of another recording.
bool claim(slr_range range, OpenRange& out) {
  const uint32_t slot = range & 63, ring = range >> 6 & 1023;
  if ((range >> 16 & 0xff) != (state.recording & 0xff) || ring >= state.ring_count.load(std::memory_order_acquire))
    return false;
  OpenSlot& open = ring_at(ring)->slots[slot];
  uint64_t seen = open.state.load(std::memory_order_acquire);
  if ((seen & 3) != kIsOpen || (seen >> 2 & ((uint64_t{1} << 40) - 1)) != range >> 24) return false;
  if (!open.state.compare_exchange_strong(seen, (seen & ~uint64_t{3}) | kClosing, std::memory_order_acq_rel))
    return false;
  out = open.range;
  open.state.store((seen & ~uint64_t{3}) | kFree, std::memory_order_release);
  return true;
}

void push(Thread* t, slr_lane lane, const slr_job* job, slr_str name, uint16_t tag = 0) {
  const uint32_t depth = t->depth;
  if (depth >= kMaxOpen) {
    t->depth = depth + 1;
    drop(SLR_DROP_TOO_DEEP);
    return;
  }
  OpenRange& range = t->ring->stack[depth];
  const bool live = state.live.load(std::memory_order_relaxed) != 0;
  bool extra = describe(t, lane, job, range.record, range.extra);
  if (!job) range.record.name = static_cast<uint16_t>(name < kMaxNames ? name : 0);
  range.extra.tag = tag;
  if (!live) {
    range.record.start_ticks = 0;  // outside the window: popped without a record
  } else {
    uint32_t around = 0;
    for (uint32_t d = 0; d < depth; ++d) around += t->ring->stack[d].record.lane == range.record.lane;
    extra |= stamp_start(range.record, range.extra, around);
    if (extra) range.record.type |= kHasExtra;
    range.record.start_ticks = now_ticks();
  }
  t->depth = depth + 1;
  t->ring->depth.store(depth + 1, std::memory_order_release);
}

// Counts open pushes of a domain. Pushes beyond the 64th are counted for this domain, because their domain is unknown.
uint32_t open_of(const Thread* t, uint16_t tag) {
  uint32_t count = t->depth > kMaxOpen ? t->depth - kMaxOpen : 0;
  for (uint32_t d = 0; d < t->depth && d < kMaxOpen; ++d) count += t->ring->stack[d].extra.tag == tag;
  return count;
}

// `tag` 0: the last push of the lane; else the last of the domain.
void pop(Thread* t, slr_lane lane, uint16_t tag = 0) {
  const uint64_t now = now_ticks();
  const uint32_t depth = t->depth;
  if (depth > kMaxOpen) {
    t->depth = depth - 1;
    return;
  }
  const uint16_t wanted = lane == 0 || !is_lane(lane) ? t->lane : static_cast<uint16_t>(lane);
  const auto is_wanted = [&](const OpenRange& open) {
    return open.extra.tag == tag && (tag != 0 || open.record.lane == wanted);
  };
  uint32_t at = depth;
  while (at > 0 && !is_wanted(t->ring->stack[at - 1])) --at;
  if (at == 0) {
    drop(SLR_DROP_BAD_HANDLE);
    return;
  }
  OpenRange range = t->ring->stack[at - 1];
  for (; at < depth; ++at) t->ring->stack[at - 1] = t->ring->stack[at];  // pushes of other lanes above it stay open
  t->depth = depth - 1;
  if (range.record.start_ticks != 0) {
    range.record.end_ticks = now;
    stamp_end(range.record, range.extra);
    finish(t, range.record, range.extra);
  }
  t->ring->depth.store(depth - 1, std::memory_order_release);
}

void emit_simple(Thread* t, RecordType type, slr_lane lane, uint32_t name, uint64_t value) {
  Record r{};
  r.start_ticks = now_ticks();
  r.end_ticks = value;
  r.name = static_cast<uint16_t>(name < kMaxNames ? name : 0);
  r.lane = lane == 0 || !is_lane(lane) ? t->lane : static_cast<uint16_t>(lane);
  r.type = type;
  r.chunk = -1;
  r.micro_batch = -1;
  r.step = state.step.load(std::memory_order_relaxed);
  emit(t, r, nullptr);
}

slr_job job_named(slr_str name) {
  slr_job job = SLR_JOB(SLR_USER, -1, -1);
  job.name = name;
  return job;
}

}  // namespace

int push_tagged(uint16_t tag, slr_str name, LaneAt lane_at) {
  Call call;
  if (!call) return kNotTracked;
  const uint32_t depth = open_of(call.get(), tag);
  push(call.get(), lane_at(*call.get(), tag, depth), nullptr, name, tag);
  return static_cast<int>(depth);
}

int pop_tagged(uint16_t tag) {
  Call call;
  if (!call) return kNotTracked;
  const uint32_t depth = open_of(call.get(), tag);
  pop(call.get(), 0, tag);
  return depth == 0 ? kNotTracked : static_cast<int>(depth) - 1;
}

slr_range begin_tagged(uint16_t tag, slr_str name, slr_lane lane, LaneAt lane_at) {
  Call call;
  if (!call || !state.live.load(std::memory_order_relaxed)) return 0;
  const slr_job job = job_named(name);
  return begin(call.get(), lane ? lane : lane_at(*call.get(), tag, 0), &job, kNoEvent, 0);
}

bool has_room(uint32_t places) {
  Thread* t = this_thread;
  if (!is_on() || !t || this_recording != state.recording) return true;  // its first record
  return t->head + places - t->ring->tail.load(std::memory_order_acquire) <= state.ring_records;
}

void forget_steps() { step_count.store(0); }

int32_t step_at(uint64_t ticks) {
  const uint32_t count = step_count.load(std::memory_order_acquire);
  for (uint32_t i = count; i > 0 && count - i < kKeptSteps; --i)
    if (steps[(i - 1) % kKeptSteps].ticks.load(std::memory_order_relaxed) <= ticks)
      return steps[(i - 1) % kKeptSteps].step.load(std::memory_order_relaxed);
  return -1;
}

void record_done(const DoneRange& range) {
  Call call;
  if (!call || (!range.began_in_window && !state.live.load(std::memory_order_relaxed))) return;
  slr_job job = job_named(range.name);
  job.peer = range.peer;
  job.bytes = range.bytes;
  job.sequence = range.sequence;
  Record r;
  Extra e;
  if (describe(call.get(), range.lane, &job, r, e)) r.type |= kHasExtra;
  if (!range.timed) r.type |= kNoDeviceTime;
  r.step = range.step;
  r.start_ticks = range.start_ticks;
  r.end_ticks = range.end_ticks < range.start_ticks ? range.start_ticks : range.end_ticks;
  finish(call.get(), r, e);
}

void record_replay(Record r, Extra e) {
  const int64_t first = state.window_first.load(std::memory_order_relaxed);
  if (first >= 0 && (r.step < first || r.step >= state.window_stop.load(std::memory_order_relaxed))) return;
  Call call;
  if (!call) return;
  const bool says_more = e.bytes >= 0 || e.sequence >= 0 || e.peer >= 0 || e.stage >= 0;
  r.type = static_cast<uint8_t>(kRange | kDeviceTimes | (says_more ? kHasExtra : 0));
  e.start_event = e.end_event = kNoEvent;
  finish(call.get(), r, e);
}

void mark_tagged(uint16_t tag, slr_str name, slr_lane lane, LaneAt lane_at) {
  Call call;
  if (!call || !state.live.load(std::memory_order_relaxed)) return;
  // A mark has the host's time only: it is on the thread's lane, unless a stream was named.
  emit_simple(call.get(), kInstant, lane ? lane : lane_at(*call.get(), tag, kMaxOpen), name, 0);
}

void record_open_ranges(Thread* t) {
  const uint32_t depth = t->depth < kMaxOpen ? t->depth : kMaxOpen;
  for (uint32_t d = 0; d < depth; ++d) {
    OpenRange range = t->ring->stack[d];
    if (range.record.start_ticks == 0) continue;
    release_event(range.extra.start_event);
    range.record.type = static_cast<uint8_t>((range.record.type & (kHasExtra | kNoDeviceTime)) | kOpenRange);
    if (range.extra.start_event != kNoEvent) range.record.type |= kNoDeviceTime;
    range.extra.start_event = range.extra.end_event = kNoEvent;
    finish(t, range.record, range.extra);
  }
  t->depth = 0;
  t->ring->depth.store(0, std::memory_order_release);
}

}  // namespace slr

using namespace slr;  // the C functions are not members, or their visibility would be lost

extern "C" {

slr_range slr_begin(slr_lane lane, const slr_job* job) {
  Call call;
  if (!call || !state.live.load(std::memory_order_relaxed)) return 0;
  return begin(call.get(), lane, job, kNoEvent, 0);
}

void slr_end(slr_range range) {
  if (range == 0) return;
  const uint64_t now = is_on() ? now_ticks() : 0;
  Call call;
  if (!call) return;
  OpenRange open;
  if (!claim(range, open)) {
    drop(SLR_DROP_BAD_HANDLE);
    return;
  }
  open.record.end_ticks = now;
  stamp_end(open.record, open.extra);
  finish(call.get(), open.record, open.extra);
}

slr_range slr_switch(slr_lane lane, slr_range range, const slr_job* next) {
  Call call;
  if (!call) return 0;
  const bool live = state.live.load(std::memory_order_relaxed) != 0;
  if (range == 0) return live ? begin(call.get(), lane, next, kNoEvent, 0) : 0;
  OpenRange open;
  if (!claim(range, open)) {
    drop(SLR_DROP_BAD_HANDLE);
    return 0;
  }
  open.record.end_ticks = now_ticks();
  stamp_end(open.record, open.extra);
  const uint16_t next_lane = lane == 0 || !is_lane(lane) ? call->lane : static_cast<uint16_t>(lane);
  const uint32_t shared = live && open.record.lane == next_lane ? open.extra.end_event : kNoEvent;
  if (shared != kNoEvent) share_event(shared);
  const uint64_t at = open.record.end_ticks;
  finish(call.get(), open.record, open.extra);
  return live ? begin(call.get(), lane, next, shared, at) : 0;
}

void slr_past(slr_lane lane, const slr_job* job, uint64_t began_ns_ago, uint64_t ended_ns_ago) {
  Call call;
  if (!call || !state.live.load(std::memory_order_relaxed)) return;
  const uint64_t now = now_ticks();
  // Nanoseconds times ticks a second: 128 bits, as an hour of both is more than 64 hold.
  const auto before = [now](uint64_t ns) {
    const auto ticks = static_cast<unsigned __int128>(ns) * state.ticks_per_second / 1000000000u;
    return ticks < now ? now - static_cast<uint64_t>(ticks) : 1;
  };
  Record r;
  Extra e;
  if (describe(call.get(), lane, job, r, e)) r.type |= kHasExtra;
  if (lanes[r.lane].entry.device_kind != SLR_HOST) r.type |= kNoDeviceTime;
  r.start_ticks = before(began_ns_ago);
  r.end_ticks = before(ended_ns_ago < began_ns_ago ? ended_ns_ago : began_ns_ago);
  finish(call.get(), r, e);
}

void slr_push(slr_lane lane, slr_str name) {
  Call call;
  if (call) push(call.get(), lane, nullptr, name);
}

void slr_push_job(slr_lane lane, const slr_job* job) {
  Call call;
  if (call) push(call.get(), lane, job, 0);
}

void slr_pop(slr_lane lane) {
  Call call;
  if (call) pop(call.get(), lane);
}

void slr_mark(slr_lane lane, slr_str name) {
  Call call;
  if (call && state.live.load(std::memory_order_relaxed)) emit_simple(call.get(), kInstant, lane, name, 0);
}

void slr_counter(slr_str name, double value) {
  Call call;
  if (!call || !state.live.load(std::memory_order_relaxed)) return;
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  emit_simple(call.get(), kCounter, 0, name, bits);
}

void slr_step(int64_t step) {
  Call call;
  if (!call) return;
  state.step.store(static_cast<int32_t>(step < 0           ? -1
                                        : step > INT32_MAX ? INT32_MAX
                                                           : step),
                   std::memory_order_relaxed);
  const uint32_t place = step_count.load(std::memory_order_relaxed);
  steps[place % kKeptSteps].step.store(state.step.load(std::memory_order_relaxed), std::memory_order_relaxed);
  steps[place % kKeptSteps].ticks.store(now_ticks(), std::memory_order_relaxed);
  step_count.store(place + 1, std::memory_order_release);
  const int64_t first = state.window_first.load(std::memory_order_relaxed);
  const bool live = first < 0 || (step >= first && step < state.window_stop.load(std::memory_order_relaxed));
  state.live.store(live, std::memory_order_relaxed);
  ask_for_anchors();
  if (live) emit_simple(call.get(), kStep, 0, 0, static_cast<uint64_t>(step));
}

void slr_window(int64_t first, int64_t stop) {
  if (!is_on()) return;
  state.window_stop.store(stop, std::memory_order_relaxed);
  state.window_first.store(first, std::memory_order_relaxed);
  const int32_t step = state.step.load(std::memory_order_relaxed);
  state.live.store(first < 0 || (step >= first && step < stop), std::memory_order_relaxed);
}

}  // extern "C"
