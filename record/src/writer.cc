// The background thread writes rings into chunks. It takes rings that are a quarter full or have records as old as
// flush_ms, and waits for the devices' times at the front of each ring. It writes, and only then moves the ring's tail.
// After a kill, records are in the cold file, in the ring, or (between the two) in both, which positions distinguish.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "anchors.h"
#include "clock.h"
#include "device.h"
#include "devices.h"
#include "json_text.h"
#include "pack.h"
#include "recorder.h"

namespace slr {
namespace {

constexpr int64_t kMs = 1'000'000, kSecond = 1'000'000'000;
constexpr int64_t kSnapshotNs = 5 * kSecond, kSyncNs = 10 * kSecond;
constexpr int64_t kRetryNs = 500 * kMs, kFaultNs = 200 * kMs;
constexpr uint64_t kDueRecords = 2048;

struct GapEntry {
  uint32_t reason, reserved;
  uint64_t count, first_ticks, last_ticks;
};
static_assert(sizeof(GapEntry) == 32);
struct LaneRow {
  uint32_t id, reserved;
  LaneEntry entry;
};

class Writer {
 public:
  void run();

 private:
  bool put(ChunkType type, const void* payload, size_t bytes, uint64_t first_ticks, uint16_t flags = 0,
           bool last = false);
  bool put_names(uint32_t from);
  bool put_lanes();
  bool put_all_tables();
  bool put_new_tables();
  void drain(uint32_t index, bool force, bool give_up);
  void drain_all(bool force, bool give_up);
  bool all_written_up_to(const uint64_t* heads, uint32_t count) const;
  void housekeeping(int64_t now);
  void put_gaps(bool last);
  void put_end();
  void publish_stats();

  Packer packer_;
  char meta_[3072];
  size_t meta_bytes_ = 0;
  const char* kernels_written_ = nullptr;
  uint32_t names_written_ = 0, lanes_written_ = 0, lanes_version_ = 0, devices_written_ = 0;
  uint64_t drops_written_[kDropReasons] = {};
  uint64_t last_gap_ticks_ = 0;
  int64_t last_write_ns_[kMaxRings] = {};
  int64_t next_snapshot_ns_ = 0, next_sync_ns_ = 0, retry_ns_ = 0;
  bool names_are_stuck_ = false;
  bool fuller_ = false;  // some ring fills faster than it is emptied at leisure
  // A chunk that the disk refused; its records are out of the devices' hands, so these very bytes are tried again.
  bool stuck_ = false;
  const uint8_t* stuck_payload_ = nullptr;
  size_t stuck_bytes_ = 0;
  uint64_t stuck_ticks_ = 0, stuck_tail_ = 0;
  uint32_t stuck_ring_ = 0, stuck_count_ = 0;
  uint64_t written_ = 0;
  uint64_t heads_[kMaxRings];
};

bool Writer::put(ChunkType type, const void* payload, size_t bytes, uint64_t first_ticks, uint16_t flags, bool last) {
  return state.cold.write(type, payload, bytes, first_ticks, flags, last);
}

bool Writer::put_names(uint32_t from) {
  uint32_t end = 0;
  const char* table = name_table(&end);
  while (from < end) {
    uint32_t to = from;
    while (to < end) {
      uint16_t length;
      memcpy(&length, table + to + 2, 2);
      if (to + 4u + length - from > kMaxPayloadBytes) break;
      to += 4u + length;
    }
    if (!put(kStrings, table + from, to - from, 0)) return false;
    names_written_ = from = to;
  }
  return true;
}

bool Writer::put_lanes() {
  const uint32_t version = lanes_version.load(std::memory_order_acquire);
  const uint32_t count = lane_count.load(std::memory_order_acquire);
  constexpr uint32_t kRows = 256;
  static LaneRow rows[kRows];
  for (uint32_t id = 1; id < count;) {
    uint32_t n = 0;
    {
      // Entries get new names. A thread that holds the lock for so long met a fault there, and no thread adds more.
      const Held held(names, names_are_stuck_ ? 0 : kFaultNs);
      names_are_stuck_ = !held;
      for (; n < kRows && id < count; ++n, ++id) rows[n] = {id, 0, lanes[id].entry};
    }
    if (!put(kLanes, rows, n * sizeof rows[0], 0)) return false;
  }
  lanes_written_ = count;
  lanes_version_ = version;
  return true;
}

bool Writer::put_all_tables() {
  devices_written_ = device_count.load(std::memory_order_acquire);
  kernels_written_ = kernels_known.load(std::memory_order_acquire);
  meta_bytes_ = write_meta(meta_, sizeof meta_);
  return put(kMeta, meta_, meta_bytes_, now_ticks()) && put_names(0) && put_lanes() && put_clocks(state.cold, true);
}

// The tables that later records refer to come before them.
bool Writer::put_new_tables() {
  if (state.cold.chunks_in_file() == 0 || state.cold.chunks_in_file() % kMetaEveryChunks == 0 ||
      devices_written_ != device_count.load(std::memory_order_acquire) ||
      kernels_written_ != kernels_known.load(std::memory_order_acquire))
    return put_all_tables();
  uint32_t bytes = 0;
  name_table(&bytes);
  if (bytes > names_written_ && !put_names(names_written_)) return false;
  if (lanes_version_ != lanes_version.load(std::memory_order_acquire) ||
      lanes_written_ != lane_count.load(std::memory_order_acquire))
    return put_lanes();
  return true;
}

// Writes what of the ring is due. `force`: everything; `give_up`: without the times of devices that do not answer.
void Writer::drain(uint32_t index, bool force, bool give_up) {
  RingHeader* ring = ring_at(index);
  const Record* records = records_of(ring);
  const uint64_t head = ring->head.load(std::memory_order_acquire), size = state.ring_records, mask = size - 1;
  uint64_t tail = ring->tail.load(std::memory_order_relaxed);
  if (head == tail) {
    last_write_ns_[index] = 0;
    return;
  }
  const int64_t now = clock_ns(CLOCK_MONOTONIC);
  if (last_write_ns_[index] == 0) last_write_ns_[index] = now;
  if (head - tail > size) return give_up_recording();  // no ring of ours is so
  if (head - tail > size / 8) fuller_ = true;
  const bool due = force || head - tail >= kDueRecords || head - tail >= size / 4 ||
                   now - last_write_ns_[index] >= int64_t{state.settings.flush_ms} * kMs;
  if (!due) return;
  const bool crowded = head - tail > size / 2;
  // A foreign record may claim a place beyond the last one.
  const auto is_left = [&] { return head - tail - 1 < size; };
  while (is_left() && !stuck_) {
    const uint64_t first = tail, first_ticks = records[tail & mask].start_ticks;
    const uint8_t shift = tick_shift_of(state.ticks_per_second);
    packer_.begin(shift, first_ticks);
    while (is_left() && packer_.has_room()) {
      Record r = records[tail & mask];
      Extra e;
      const bool extra = r.type & kHasExtra;
      if (extra) memcpy(&e, &records[(tail + 1) & mask], sizeof e);
      if (r.type & kOnDevice) {
        DeviceTimes times;
        DeviceState answer = harvest(r, e, times);
        if (answer == DeviceState::kWaiting) {
          if (!give_up && !crowded) break;
          drop(SLR_DROP_UNFINISHED);
          release_event(e.start_event);
          release_event(e.end_event);
          answer = DeviceState::kNever;
        }
        r.type = static_cast<uint8_t>(r.type & ~kOnDevice);
        if (answer == DeviceState::kReady) {
          r.type |= kDeviceTimes;
          r.start_ticks = static_cast<uint64_t>(times.start_ns);
          r.end_ticks = static_cast<uint64_t>(times.start_ns + times.dur_ns);
        } else {
          r.type |= kNoDeviceTime;
        }
      }
      packer_.add(r, extra ? &e : nullptr);
      tail += extra ? 2 : 1;
    }
    if (packer_.count() == 0) return;
    size_t bytes = 0;
    const uint32_t count = packer_.count();
    const uint8_t* payload = packer_.finish(index, first, tail - first, &bytes);
    if (!put_new_tables() || !put(kRanges, payload, bytes, first_ticks, tick_shift_of(state.ticks_per_second))) {
      stuck_ = true;
      stuck_payload_ = payload;
      stuck_bytes_ = bytes;
      stuck_ticks_ = first_ticks;
      stuck_tail_ = tail;
      stuck_ring_ = index;
      stuck_count_ = count;
      retry_ns_ = now + kRetryNs;
      return;
    }
    ring->tail.store(tail, std::memory_order_release);
    written_ += count;
    last_write_ns_[index] = now;
  }
}

void Writer::drain_all(bool force, bool give_up) {
  if (stuck_) {
    if (clock_ns(CLOCK_MONOTONIC) < retry_ns_ && !give_up) return;
    if (!put_new_tables() ||
        !put(kRanges, stuck_payload_, stuck_bytes_, stuck_ticks_, tick_shift_of(state.ticks_per_second))) {
      retry_ns_ = clock_ns(CLOCK_MONOTONIC) + kRetryNs;
      return;
    }
    ring_at(stuck_ring_)->tail.store(stuck_tail_, std::memory_order_release);
    written_ += stuck_count_;
    stuck_ = false;
  }
  fuller_ = false;
  const uint32_t count = state.ring_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count && !stuck_; ++i) drain(i, force, give_up);
  put_gaps(false);
}

// Writes the drops since the last time. `last`: into the room that is kept for it, also on a full disk.
void Writer::put_gaps(bool last) {
  uint64_t ring_drops = 0;
  const uint32_t count = state.ring_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count; ++i) ring_drops += ring_at(i)->dropped.load(std::memory_order_relaxed);
  GapEntry entries[kDropReasons];
  uint32_t n = 0;
  uint64_t now[kDropReasons];
  const uint64_t ticks = now_ticks();
  for (uint32_t reason = 0; reason < kDropReasons; ++reason) {
    now[reason] = reason == SLR_DROP_RING_FULL ? ring_drops : state.hot->drops[reason].load(std::memory_order_relaxed);
    if (now[reason] == drops_written_[reason]) continue;
    entries[n++] = {reason, 0, now[reason] - drops_written_[reason], last_gap_ticks_, ticks};
  }
  if (n > 0 && stuck_ && !last) return;
  if (n > 0 && !put(kGap, entries, n * sizeof entries[0], last_gap_ticks_, 0, last)) return;
  memcpy(drops_written_, now, sizeof now);
  last_gap_ticks_ = ticks;
}

void Writer::housekeeping(int64_t now) {
  keep_anchors(now);
  if (now >= next_snapshot_ns_) {
    add_snapshot(take_snapshot());
    next_snapshot_ns_ = now + kSnapshotNs;
  }
  if (stuck_) return;
  if (clocks_waiting() && state.cold.chunks_in_file() > 0) put_clocks(state.cold, false);
  if (state.cold.should_rotate(now) && state.cold.rotate(now)) put_all_tables();
  if (now >= next_sync_ns_) {
    if (next_sync_ns_ != 0) state.cold.sync();
    next_sync_ns_ = now + kSyncNs;
  }
}

bool Writer::all_written_up_to(const uint64_t* heads, uint32_t count) const {
  for (uint32_t i = 0; i < count; ++i)
    if (ring_at(i)->tail.load(std::memory_order_relaxed) < heads[i]) return false;
  return !stuck_;
}

void Writer::put_end() {
  slr_statistics s;
  memset(&s, 0, sizeof s);
  s.size = sizeof s;
  slr_stats(&s);
  char text[2048];
  JsonText json(text, sizeof text);
  json.number("records", static_cast<int64_t>(s.records));
  json.number("written", static_cast<int64_t>(written_));
  uint64_t dropped = 0;  // without a sign: another program may have overwritten the counts
  for (uint32_t i = 0; i < SLR_DROP_CAPTURE; ++i) dropped += s.drops[i];
  json.number("dropped", static_cast<int64_t>(dropped));
  json.number("device_ranges", static_cast<int64_t>(s.device_ranges));
  json.number("events", static_cast<int64_t>(s.events));
  json.number("driver_ns", static_cast<int64_t>(s.driver_ns));
  json.number("anchors", static_cast<int64_t>(s.anchors));
  json.number("anchors_refused", static_cast<int64_t>(s.anchors_refused));
  json.number("worst_round_trip_ns", static_cast<int64_t>(s.worst_round_trip_ns));
  json.number("write_errors", static_cast<int64_t>(s.write_errors));
  json.number("self_ns", static_cast<int64_t>(s.self_ns));
  put(kEnd, text, json.finish(), now_ticks(), 0, true);
}

void Writer::publish_stats() {
  timespec cpu;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  writer_facts.self_ns.store(static_cast<uint64_t>(cpu.tv_sec) * kSecond + static_cast<uint64_t>(cpu.tv_nsec));
  writer_facts.written_records.store(written_);
  writer_facts.written_bytes.store(state.cold.bytes());
  writer_facts.write_errors.store(state.cold.errors());
}

void Writer::run() {
  begin_clock_log();
  add_snapshot(state.hot->first);
  add_snapshot(state.hot->second);
  next_snapshot_ns_ = clock_ns(CLOCK_MONOTONIC) + kSnapshotNs;
  last_gap_ticks_ = state.hot->first.ticks;
  put_all_tables();
  int64_t wait = 20 * kMs;
  for (;;) {
    const uint32_t rung = state.wake.rung();
    if (!state.stopping && state.flush_wanted == state.flush_done) state.wake.wait(rung, wait);
    const bool stopping = state.stopping;
    const uint64_t ticket = state.flush_wanted;
    const bool flushing = ticket != state.flush_done;
    const int64_t patience = int64_t{state.flush_ms} * kMs;

    if (state.given_up) return;
    const int64_t now = clock_ns(CLOCK_MONOTONIC);
    housekeeping(now);
    harvest_graphs();
    drain_all(stopping || flushing, false);
    wait = fuller_ ? kMs : device_times_wait() ? 5 * kMs : 20 * kMs;
    if (stopping || flushing) {
      const uint32_t count = state.ring_count.load(std::memory_order_acquire);
      for (uint32_t i = 0; i < count; ++i) heads_[i] = ring_at(i)->head.load(std::memory_order_acquire);
      const int64_t until = now + (stopping ? kSecond : patience);
      timespec nap = {0, static_cast<long>(kMs)};
      while (!all_written_up_to(heads_, count) && clock_ns(CLOCK_MONOTONIC) < until) {
        drain_all(true, false);
        if (!all_written_up_to(heads_, count)) nanosleep(&nap, nullptr);
      }
      if (stopping) drain_all(true, true);
      publish_stats();
      if (!all_written_up_to(heads_, count)) flush_failed = ticket;
      state.flush_done = ticket;
      state.done.ring();
      if (stopping) break;
    }
    publish_stats();
  }
  if (!stuck_) {
    put_new_tables();
    add_snapshot(take_snapshot());
    put_clocks(state.cold, false);
  }
  put_gaps(true);
  // Records that the disk refused are in the hot file; the recording has no end until `stageline recover` adds one.
  if (!stuck_) put_end();
  publish_stats();
  state.cold.sync();
  all_is_written = !stuck_;
}

Writer writer;

void* thread_body(void*) {
  prctl(PR_SET_NAME, "slr-writer");
  setpriority(PRIO_PROCESS, 0, 5);  // of this thread only, on Linux
  writer.run();
  state.writer_runs = false;
  state.done.ring();
  return nullptr;
}

}  // namespace

WriterFacts writer_facts;
std::atomic<uint64_t> flush_failed{0};
bool all_is_written = false;
std::atomic<void (*)()> before_shutdown{nullptr};

bool start_writer() {
  begin_anchors();
  writer_facts.self_ns = writer_facts.written_records = writer_facts.written_bytes = writer_facts.write_errors = 0;
  memset(static_cast<void*>(&writer), 0, sizeof writer);
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);  // a fault that is kept off ends the program
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 << 10);
  state.writer_runs = true;
  const bool started = pthread_create(&state.writer, &attributes, thread_body, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) state.writer_runs = false;
  return started;
}

}  // namespace slr
