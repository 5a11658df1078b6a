// The one recorder of a process: what the hot path, the background thread and the devices share.
//
//   threads ──push/pop──▶ ring (hot file) ──writer──▶ chunks (cold file)
//                           │ 32-byte records, one ring a thread, one producer, one consumer
//                           └ the page cache owns them: a kill -9 leaves the file as it was
//
// Everything here is leaked on purpose: static destructors run while other threads still record.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "cold_file.h"
#include "layout.h"
#include "lock.h"
#include "settings.h"
#include "stageline_record.h"

namespace slr {

inline constexpr uint32_t kMaxRings = 1024;

// One page that the kernel empties in a child (MADV_WIPEONFORK), also after a bare clone(2): whoever is forked finds
// the recorder off, whatever the parent did.
struct Control {
  std::atomic<uint32_t> on;
};
extern std::atomic<Control*> control;
inline bool is_on() { return control.load(std::memory_order_acquire)->on.load(std::memory_order_acquire) != 0; }

// A ring as its owner sees it, in private memory, so that a forked child has a separate copy.
struct Thread {
  RingHeader* ring;
  Record* records;
  uint64_t head, known_tail;  // known_tail: the writer had read up to here at least
  uint32_t depth;
  uint32_t next_slot;
  uint32_t index;
  uint16_t lane;
  uint32_t generation;     // another thread has the place: another number
  volatile uint32_t busy;  // inside a call: a signal handler must keep out
};
extern thread_local Thread* this_thread __attribute__((tls_model("initial-exec")));
// Of which recording this_thread is: another one may have given the place to another thread.
extern thread_local uint32_t this_recording __attribute__((tls_model("initial-exec")));

struct DeviceLane;
struct Lane {
  LaneEntry entry;
  void* stream;
  std::atomic<DeviceLane*> device;  // nullptr: the host's times
  std::atomic<uint32_t> closed;
};

struct State {
  Settings settings;
  // Mapped; of a file, or anonymous where there can be none. It stays mapped when the recording has ended and in a
  // child, as anonymous memory: a thread may still be inside a call.
  HotHeader* hot;
  uint64_t hot_bytes;
  // These are from its header. Any program may write to the file, so nothing read from it decides where memory is.
  uint64_t lanes_at, names_at, rings_at, ring_bytes, ticks_per_second;
  uint32_t ring_limit;
  std::atomic<uint32_t> ring_count;
  // Another program cut or overwrote the file. The recording has ended without its end record.
  std::atomic<uint32_t> given_up;
  OwnFile hot_file;  // closed: anonymous
  char hot_path[1400];
  uint32_t ring_records;
  std::atomic<uint32_t> recording;  // counts slr_init, so that nothing of an earlier recording is used
  std::atomic<uint64_t> free_rings[kMaxRings / 64];
  // By ring. A child that was forked inside a call has the last one in the place of `interrupted`, as that call has yet
  // to return.
  Thread threads[kMaxRings + 1];
  Thread* interrupted;

  std::atomic<int32_t> step;
  std::atomic<uint32_t> live;  // inside the window
  std::atomic<int64_t> window_first, window_stop;

  ColdFile cold;
  Snapshot start;
  pthread_t writer;
  Bell wake, done;  // for the writer: there is something to do; by it: a flush is answered, or it has ended
  std::atomic<bool> stopping, writer_runs;
  std::atomic<uint64_t> flush_wanted, flush_done;
  std::atomic<uint32_t> flush_ms;
  slr_statistics last_stats;  // of the recording that ended
};
extern State state;

// --- names.cc: texts and lanes live in private memory, so that they work before slr_init and in a child.
extern Lock names;  // of adding to them, and of lanes' entries
extern Lane lanes[kMaxLanes];
extern std::atomic<uint32_t> lane_count;  // lanes 1 … lane_count − 1
uint16_t add_lane(const LaneEntry& entry, void* stream);
// The names that are there; `bytes` as HotHeader::name_bytes counts them.
const char* name_table(uint32_t* bytes);
void publish_lane(uint16_t lane);  // its entry has changed
// Copies texts and lanes to a new hot file, which gets all later ones too.
void publish_names();
// Gives a lane another name; that of a thread's own lane by the system's number of the thread.
void name_lane(slr_lane lane, const char* name);
void name_lane_of_thread(uint32_t thread_id, const char* name);

// --- hot_file.cc
bool open_hot_file(const Settings& settings, const char* stem, const FileHeader& identity);
void close_hot_file(bool remove);
// In a child: the parent's rings are the parent's.
void leave_hot_file();
// Ends the recording at once, where another program changed its files. Any thread may call it, and signal handlers.
void give_up_recording();
// From here on, a mapped file that is cut ends the recording and not the program.
void survive_cut_files();
// Once a process, before the first thread records.
bool make_exit_key();
RingHeader* ring_at(uint32_t index);
inline Record* records_of(RingHeader* ring) {
  return reinterpret_cast<Record*>(reinterpret_cast<char*>(ring) + kRingHeaderBytes);
}
// A ring for the calling thread: its first range. nullptr when there is none left, or no lane for it.
Thread* acquire_thread();

// --- ranges.cc
void drop(slr_drop reason, uint64_t count = 1);
void release_thread(void* thread);  // at thread exit: what is open is kept as open
void record_open_ranges(Thread* thread);
// Pushes of a domain (`tag`, 1 and up; 0 is slr_push) end with a pop of the same domain, whatever lane it went to.
// `lane_at` chooses the lane, told how many of the domain are open on the thread, which is what push and pop return.
inline constexpr int kNotTracked = -2;
using LaneAt = uint16_t (*)(const Thread& thread, uint16_t tag, uint32_t depth);
int push_tagged(uint16_t tag, slr_str name, LaneAt lane_at);
int pop_tagged(uint16_t tag);
// `lane` 0: as lane_at says.
slr_range begin_tagged(uint16_t tag, slr_str name, slr_lane lane, LaneAt lane_at);
// A range that is over, of whoever knew its times; `timed`: when it ran, not when it was asked for.
struct DoneRange {
  uint64_t start_ticks, end_ticks;
  slr_lane lane;
  slr_str name;
  int32_t step, peer;
  int64_t bytes, sequence;
  bool timed;
  bool began_in_window;  // it is kept although the window may be closed by now
};
void record_done(const DoneRange& range);
// A captured range that ran again: its record with the device's times. By the background thread, in a ring of its own.
void record_replay(Record record, Extra extra);
// The calling thread's ring has room for this number of places more, for threads that wait rather than drop.
bool has_room(uint32_t places);
// The step that the host was in at a time of the last 256 steps; −1: none.
int32_t step_at(uint64_t ticks);
void forget_steps();
void mark_tagged(uint16_t tag, slr_str name, slr_lane lane, LaneAt lane_at);

// --- writer.cc
bool start_writer();
// META: who recorded where and how; JSON. Returns its length.
size_t write_meta(char* to, size_t size);
// Sets the note on requested kernels in META: "" so far all is well, nullptr they were not requested. Literals only.
void say_of_kernels(const char* what);
extern std::atomic<const char*> kernels_known;
// Called before a recording ends, by who has something to add to it.
extern std::atomic<void (*)()> before_shutdown;

}  // namespace slr
