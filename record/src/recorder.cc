// The life of a recording: begin, end, fork, exit.
#include "recorder.h"

#include <errno.h>
#include <linux/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "anchors.h"
#include "clock.h"
#include "device.h"
#include "guard.h"
#include "json_text.h"

namespace slr {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMaxWaitNs = 5 * kSecond;  // for a lock, where the program ends or forks

Lock life;  // slr_init and slr_shutdown
bool hooks_installed = false;
bool writer_left = false;  // it had not ended when slr_shutdown would wait no longer
slr_config child_config;   // what a child of STAGELINE_FORK=1 begins with
char child_dir[1024], child_job[128];

int begin(const slr_config* config);

// These belong to the thread that forks. False: it met a fault while it held the lock, and its handler forks.
thread_local bool has_life __attribute__((tls_model("initial-exec"))) = false;
thread_local bool has_names __attribute__((tls_model("initial-exec"))) = false;
thread_local bool was_recording __attribute__((tls_model("initial-exec"))) = false;

void before_fork() {
  has_life = life.take(kMaxWaitNs);
  has_names = names.take(kMaxWaitNs);
  was_recording = is_on();
}
void after_fork_in_parent() {
  if (has_names) names.give();
  if (has_life) life.give();
}
// The child has one thread, none of the parent's files and nothing of its drivers. It must not touch the parent's
// rings, which are the same memory; Control is empty, so no call does.
void after_fork_in_child() {
  if (has_names) names.give();
  control.load()->on.store(0);  // where the kernel did not
  if (state.hot) leave_hot_file();
  state.cold = ColdFile();  // not closed: the descriptor is the parent's file, and costs nothing
  state.writer_runs = writer_left = false;
  state.given_up = 0;
  // A handler forks, and the call that it interrupted goes on when it returns.
  if (this_thread && this_thread->busy) {
    state.interrupted = this_thread;
    state.threads[kMaxRings].generation = this_thread->generation;
  }
  this_thread = nullptr;
  forget_devices();
  if (!has_life) return;
  if (was_recording && state.settings.records_in_child) begin(&child_config);
  life.give();
}

void at_exit() { slr_shutdown(); }

bool make_control() {
  Control* page = control.load();
  static Control* own = nullptr;
  if (!own) {
    void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    madvise(memory, 4096, MADV_WIPEONFORK);
    own = static_cast<Control*>(memory);
  }
  page = own;
  page->on.store(0, std::memory_order_relaxed);
  control.store(page, std::memory_order_release);
  return true;
}

void remember_for_children(const slr_config* config) {
  slr_config c = SLR_CONFIG_INIT;
  if (config && config->size >= sizeof c.size) memcpy(&c, config, config->size < sizeof c ? config->size : sizeof c);
  c.size = sizeof c;
  if (c.dir && c.dir != child_dir) snprintf(child_dir, sizeof child_dir, "%s", c.dir), c.dir = child_dir;
  if (c.job && c.job != child_job) snprintf(child_job, sizeof child_job, "%s", c.job), c.job = child_job;
  child_config = c;
}

int begin(const slr_config* config) {
  const char* off = getenv("STAGELINE_OFF");
  if (off && strcmp(off, "1") == 0) return 2;
  if (writer_left || state.given_up) {
    if (state.writer_runs) return 5;
    pthread_join(state.writer, nullptr);
    writer_left = false;
    state.given_up = 0;
    state.cold.close();
  }
  if (!make_control()) return 4;
  remember_for_children(config);
  state.settings = resolve_settings(config);
  const ClockKind clock = choose_clock();
  const Snapshot first = take_snapshot();
  const timespec nap = {0, 2'000'000};
  nanosleep(&nap, nullptr);
  const Snapshot second = take_snapshot();

  FileHeader identity{};
  memcpy(identity.magic, kFileMagic, sizeof identity.magic);
  identity.version = kFormatVersion;
  identity.clock = clock;
  identity.ticks_per_second = ticks_per_second(first, second);
  identity.tick_shift = tick_shift_of(identity.ticks_per_second);
  identity.start_realtime_ns = static_cast<uint64_t>(first.realtime_ns);
  identity.pid = static_cast<uint32_t>(getpid());
  identity.rank = state.settings.rank;
  // The system call itself: glibc has a function for it since 2.25 only.
  if (syscall(SYS_getrandom, identity.uuid, sizeof identity.uuid, GRND_NONBLOCK) !=
      static_cast<long>(sizeof identity.uuid)) {
    const uint64_t mixed[2] = {first.ticks ^ identity.pid, static_cast<uint64_t>(first.realtime_ns)};
    memcpy(identity.uuid, mixed, sizeof mixed);
  }
  {
    const LimitQuiet quiet;
    if (!state.cold.open(state.settings, identity)) return 3;
  }
  if (!open_hot_file(state.settings, state.cold.stem(), identity)) {
    state.cold.close();
    unlink(state.cold.path());
    return 4;
  }
  survive_cut_files();
  state.hot->first = first;
  state.hot->second = second;
  ++state.recording;
  if (state.recording == 0) ++state.recording;
  state.hot->meta_bytes.store(static_cast<uint32_t>(write_meta(state.hot->meta, sizeof state.hot->meta)),
                              std::memory_order_release);
  publish_names();
  state.step.store(-1);
  forget_steps();
  state.window_stop.store(state.settings.stop_step);
  state.window_first.store(state.settings.first_step);
  state.live.store(state.settings.first_step < 0);  // else from that step on
  state.stopping = false;
  state.flush_wanted = state.flush_done = flush_failed = 0;
  if ((!hooks_installed && !make_exit_key()) || !start_writer()) {
    close_hot_file(true);
    state.cold.close();
    return 5;
  }
  if (!hooks_installed) {
    hooks_installed = true;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    atexit(at_exit);
  }
  control.load()->on.store(1, std::memory_order_release);
  return 0;
}

// Waits at most so long for the writer to say that it is so.
template <class Done> bool wait_for(int64_t ns, Done done) {
  const int64_t deadline = clock_ns(CLOCK_MONOTONIC) + ns;
  for (;;) {
    const uint32_t rung = state.done.rung();
    if (done()) return true;
    const int64_t left = deadline - clock_ns(CLOCK_MONOTONIC);
    if (left <= 0) return false;
    state.done.wait(rung, left);
  }
}

void say(const char* text, int bytes, size_t size) {
  if (bytes <= 0) return;
  const size_t all = static_cast<size_t>(bytes) < size ? static_cast<size_t>(bytes) : size - 1;
  const LimitQuiet quiet;
  if (::write(2, text, all) < 0) return;
}

// The recording has no end: what was not written when the program ended is in the hot file.
void say_unfinished(const char* why) {
  char text[2048];
  say(text,
      snprintf(text, sizeof text,
               "stageline: %s: %s; the last records are in the .slhot file (stageline recover puts both together)\n",
               state.cold.path(), why),
      sizeof text);
}

// One line where records were lost or could not be written, and none otherwise. Without stdio: the program may be
// anywhere in it.
void say_losses(const slr_statistics& s, bool all_is_written) {
  uint64_t dropped = 0;
  for (int i = 0; i < SLR_DROP_CAPTURE; ++i) dropped += s.drops[i];
  if (dropped == 0 && all_is_written) return;
  char text[2048];
  const int reason = state.cold.last_error();
  int n = snprintf(text, sizeof text, "stageline: %s: ", state.cold.path());
  const auto add = [&](const char* format, auto... values) {
    if (n > 0 && n < static_cast<int>(sizeof text))
      n += snprintf(text + n, sizeof text - static_cast<size_t>(n), format, values...);
  };
  if (dropped > 0)
    add("%llu of %llu records were dropped", static_cast<unsigned long long>(dropped),
        static_cast<unsigned long long>(s.records + dropped));
  if (!all_is_written)
    add("%sthe last records could not be written and are in the .slhot file (stageline recover puts both together)",
        dropped > 0 ? "; " : "");
  if (reason != 0) add(" (%s)", strerror(reason));
  add("%s", "\n");
  say(text, n, sizeof text);
}

// Under `life`.
void end_recording() {
  if (Thread* thread = this_thread; thread && this_recording == state.recording) {
    if (!thread->busy) {
      thread->busy = 1;
      record_open_ranges(thread);
      thread->busy = 0;
    } else {  // a handler ends the program inside a call
      drop(SLR_DROP_REENTRANT, thread->ring->depth.load(std::memory_order_relaxed));
    }
  }
  slr_statistics last;
  memset(&last, 0, sizeof last);
  last.size = sizeof last;
  state.stopping = true;
  state.wake.ring();
  const bool ended = wait_for(2 * kSecond, [] { return !state.writer_runs; });
  slr_stats(&last);
  control.load()->on.store(0, std::memory_order_release);
  if (!ended) {
    writer_left = true;
    return say_unfinished("the last records could not be written in 2 s");
  }
  pthread_join(state.writer, nullptr);
  last.recording = 0;
  state.last_stats = last;
  close_devices();
  // Records that the disk refused stay in the hot file, for `stageline recover`.
  say_losses(last, all_is_written);
  close_hot_file(all_is_written);
  state.cold.close();
}

}  // namespace

}  // namespace slr

using namespace slr;  // the C functions are not members, or their visibility would be lost

extern "C" {

int slr_init(const slr_config* config) {
  const int saved_errno = errno;
  const Held held(life);
  const int result = is_on() ? 1 : held ? begin(config) : 5;
  errno = saved_errno;
  return result;
}

void slr_shutdown(void) {
  const int saved_errno = errno;
  if (void (*const before)() = before_shutdown.load(); before) before();
  if (const Held held(life, kMaxWaitNs); !is_on()) {
  } else if (held) {
    end_recording();
  } else {
    say_unfinished("the program ended while the recorder began or ended");
  }
  errno = saved_errno;
}

int slr_flush(int timeout_ms) {
  if (!is_on() || state.stopping) return 0;
  const int saved_errno = errno;
  if (timeout_ms < 0) timeout_ms = 0;
  state.flush_ms = static_cast<uint32_t>(timeout_ms);
  const uint64_t ticket = ++state.flush_wanted;
  state.wake.ring();
  const bool answered = wait_for((int64_t{timeout_ms} + 100) * 1'000'000,
                                 [ticket] { return state.flush_done >= ticket || !state.writer_runs; });
  errno = saved_errno;
  return answered && flush_failed < ticket ? 0 : 1;
}

void slr_stats(slr_statistics* out) {
  if (!out || out->size < sizeof out->size) return;
  slr_statistics s;
  memset(&s, 0, sizeof s);
  if (!is_on()) {
    s = state.last_stats;
  } else {
    s.recording = 1;
    const uint32_t count = state.ring_count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i) {
      const RingHeader* ring = ring_at(i);
      const uint64_t doubles =
          ring->doubles.load(std::memory_order_acquire);  // never more than the head read next holds
      s.records += ring->head.load(std::memory_order_acquire) - doubles;
      s.drops[SLR_DROP_RING_FULL] += ring->dropped.load(std::memory_order_relaxed);
    }
    for (uint32_t i = SLR_DROP_RING_FULL + 1; i < SLR_DROP_REASONS; ++i)
      s.drops[i] = state.hot->drops[i].load(std::memory_order_relaxed);
    s.written_records = writer_facts.written_records.load();
    s.written_bytes = writer_facts.written_bytes.load();
    s.write_errors = writer_facts.write_errors.load();
    s.self_ns = writer_facts.self_ns.load();
    add_device_stats(s);
  }
  const uint32_t size = out->size < sizeof s ? out->size : static_cast<uint32_t>(sizeof s);
  s.size = out->size;
  memcpy(out, &s, size);
}

const char* slr_path(void) { return is_on() ? state.cold.path() : ""; }

}  // extern "C"
