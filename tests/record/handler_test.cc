// Signal handlers that end the program, or fork, wherever they find it: inside any call of the recorder. The program
// ends as the handler says, and its file is whole.
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cstring>
#include <iterator>
#include <random>
#include <thread>

#include "device_fixture.h"
#include "fake_host.h"
#include "recorder.h"

namespace {

volatile sig_atomic_t is_child = 0;

// Everything that takes a lock of the recorder's, waits for its thread, or has a record half made.
struct Calls {
  const char* name;
  void (*make)(const RecordFolder& folder, int number);
  bool leaves_whole_file = true;
};
void* streams[8];

void record_range(int32_t micro_batch) {
  slr_job job = SLR_JOB(SLR_FORWARD, micro_batch, 0);
  slr_push_job(0, &job);
  slr_end(slr_begin(0, &job));
  slr_pop(0);
}
void add_names(const RecordFolder&, int number) {
  char text[32];
  for (int i = 0; i < 20; ++i)
    slr_intern(text, static_cast<size_t>(snprintf(text, sizeof text, "name %d of %d", i, number)));
}
void add_lanes(const RecordFolder&, int number) {
  slr_lane_host("a queue");
  slr_name_thread(number % 2 ? "odd" : "even");
}
void add_streams(const RecordFolder&, int number) {
  slr_lane_close(slr_lane_stream(SLR_CUDA, streams[number % 8], "stream"));  // the next one is bound again
}
// A handler may find the driver with its own lock, which the recorder's thread then waits for.
void record_on_device(const RecordFolder&, int number) {
  const slr_lane lane = slr_lane_stream(SLR_CUDA, streams[0], "stream");
  slr_job job = SLR_JOB(SLR_FORWARD, number, 0);
  for (int i = 0; i < 50; ++i) slr_end(slr_begin(lane, &job));
}
void record(const RecordFolder&, int number) {
  for (int i = 0; i < 50; ++i) record_range(i);
  slr_step(number);
  slr_counter(1, 0.5);
}
void flush(const RecordFolder&, int number) {
  record_range(number);
  slr_flush(50);
  stats_now();
}
void begin_and_end(const RecordFolder& folder, int number) {
  record_range(number);
  slr_shutdown();
  const slr_config c = folder.config();
  slr_init(&c);
}
constexpr Calls kCalls[] = {{"names", add_names},
                            {"lanes", add_lanes},
                            {"streams of a device", add_streams},
                            {"ranges", record},
                            {"flush", flush},
                            {"begin and end", begin_and_end},
                            {"ranges of a device", record_on_device, false}};

void load_driver() {
  const Driver driver;
  for (void*& stream : streams) stream = driver.stream();
}

// Makes a timer that signals the calling thread after this number of ns.
timer_t make_timer() {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGUSR2;
#ifdef sigev_notify_thread_id
  event.sigev_notify_thread_id = gettid();
#else
  event._sigev_un._tid = gettid();
#endif
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) _exit(90);
  return timer;
}
void start_timer(timer_t timer, int64_t ns) {
  const itimerspec at = {{0, 0}, {ns / 1'000'000'000, ns % 1'000'000'000}};
  if (timer_settime(timer, 0, &at, nullptr) != 0 && !is_child) _exit(91);  // a child has no timer of its parent's
}
void on_signal(int number, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigaction(number, &action, nullptr);
}

// Runs a program that makes these calls again and again until the signal's handler ends it after this number of ns.
int end_of_program(const RecordFolder& folder, const Calls& calls, void (*handler)(int), int64_t ns) {
  fflush(nullptr);  // exit() in the child would write it again
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child != 0) return end_of(child);
  load_driver();
  on_signal(SIGUSR2, handler);
  const timer_t timer = make_timer();
  slr_config c = folder.config();
  if (slr_init(&c) != 0) _exit(92);
  start_timer(timer, ns);
  for (int number = 0;; ++number) calls.make(folder, number);
}

void exit_now(int) { exit(33); }

}  // namespace

TEST_CASE("a handler that calls exit inside a call of the recorder ends the program, and its file is whole") {
  std::mt19937 random(11);
  for (const Calls& calls : kCalls) {
    CAPTURE(std::string(calls.name));
    for (int i = 0; i < (slow_tests() ? 400 : 40); ++i) {
      RecordFolder folder;
      REQUIRE(end_of_program(folder, calls, exit_now, 1 + random() % 3'000'000) == 33);
      CHECK((folder.files(".slhot").empty() || !calls.leaves_whole_file));
      for (const auto& r : folder.read()) {
        CHECK((r.content.ended || !calls.leaves_whole_file));
        CHECK(r.content.bad_chunks == 0);
      }
    }
  }
}

TEST_CASE("a handler that aborts, raises or leaves inside a call of the recorder ends the program as it says") {
  const struct {
    void (*handler)(int);
    int end;
  } ways[] = {{[](int) { _exit(34); }, 34},
              {[](int) {
                 signal(SIGABRT, SIG_DFL);  // a sanitizer may have put its own
                 abort();
               },
               128 + SIGABRT},
              {[](int) {
                 signal(SIGTERM, SIG_DFL);
                 raise(SIGTERM);
               },
               128 + SIGTERM}};
  std::mt19937 random(12);
  for (const Calls& calls : kCalls)
    for (int i = 0; i < (slow_tests() ? 120 : 12); ++i) {
      CAPTURE(std::string(calls.name));
      const auto& way = ways[static_cast<size_t>(i) % std::size(ways)];
      RecordFolder folder;
      REQUIRE(end_of_program(folder, calls, way.handler, 1 + random() % 3'000'000) == way.end);
      for (const auto& r : folder.read()) CHECK(r.content.bad_chunks == 0);
    }
}

namespace {

struct Forks {
  std::atomic<int> made, wrong_end;
};
Forks* forks = nullptr;

// The child goes on with the call that the signal interrupted.
void fork_now(int) {
  const int saved_errno = errno;
  const pid_t child = fork();
  if (child == 0) {
    is_child = 1;
    return;
  }
  ++forks->made;
  if (const int end = child < 0 ? -2 : end_of(child); end != 44) forks->wrong_end = end;
  errno = saved_errno;
}

// Forks inside the calls; how the program ended.
int end_of_forking(const RecordFolder& folder, const Calls& calls, int times, std::mt19937& random) {
  fflush(nullptr);
  const auto seed = random();
  const pid_t program = fork();
  REQUIRE(program >= 0);
  if (program != 0) return end_of(program);
  load_driver();
  on_signal(SIGUSR2, fork_now);
  const timer_t timer = make_timer();
  slr_config c = folder.config();
  if (slr_init(&c) != 0) _exit(92);
  std::mt19937 own(seed);
  for (int number = 0, seen = -1; forks->made < times; ++number) {
    if (!is_child && forks->made != seen) {  // a child has no timer
      seen = forks->made;
      start_timer(timer, 1 + own() % 500'000);
    }
    calls.make(folder, number);
    if (is_child) {
      for (int i = 0; i < 10; ++i) record_range(1'000'000);
      slr_intern("name of the child", 17);
      slr_flush(100);
      exit(44);
    }
  }
  // A late signal must not fork inside exit(45): that child could only end with 45.
  sigset_t late;
  sigemptyset(&late);
  sigaddset(&late, SIGUSR2);
  sigprocmask(SIG_BLOCK, &late, nullptr);
  exit(is_child ? 44 : 45);  // a child that was forked behind the last call
}

}  // namespace

TEST_CASE("a handler that forks inside a call of the recorder: the child goes on and ends, and no file has both") {
  std::mt19937 random(13);
  for (const bool records : {false, true}) {
    if (records) setenv("STAGELINE_FORK", "1", 1);
    for (const Calls& calls : kCalls) {
      if (!calls.leaves_whole_file) continue;
#ifdef __SANITIZE_ADDRESS__
      // A thread that starts, ends or frees holds locks of the sanitizer's own allocator for a moment. A child that was
      // forked then and starts a writer of its own waits for them.
      if (records) continue;
#endif
#ifdef __SANITIZE_THREAD__
      // It ends a child whose new thread lies where one of the parent's threads was ("dup thread with used id").
      if (records || calls.make == begin_and_end) continue;
#endif
      CAPTURE(std::string(calls.name));
      CAPTURE(records);
      RecordFolder folder;
      Shared<Forks> counted;
      forks = &*counted;
      CHECK(end_of_forking(folder, calls, slow_tests() ? 300 : 20, random) == 45);
      CHECK(counted->wrong_end.load() == 0);
      CHECK(folder.files(".slhot").empty());
      size_t of_children = 0;
      for (const auto& r : folder.read()) {
        CHECK(r.content.ended);
        CHECK(r.content.bad_chunks == 0);
        int64_t foreign = 0;
        for (const auto& row : r.content.rows) foreign += row.micro_batch == 1'000'000;
        of_children += foreign != 0;
        CHECK((foreign == 0 || foreign == 20));
      }
      // One that was forked while nothing was recorded begins as its parent would have.
      if (calls.make != begin_and_end) CHECK((of_children > 0) == records);
    }
    unsetenv("STAGELINE_FORK");
  }
}

TEST_CASE("a fault while the table of names is locked: its handler ends the program, and its file is whole") {
  RecordFolder folder;
  fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    on_signal(SIGSEGV, [](int) { exit(35); });
    slr_config c = folder.config();
    if (slr_init(&c) != 0) _exit(92);
    record_range(7);
    const auto names = reinterpret_cast<char*>(slr::state.hot) + slr::state.names_at;
    if (mprotect(names, 4096, PROT_READ) != 0) _exit(93);
    slr_intern("written where nothing can be", 28);
    _exit(94);
  }
  CHECK(end_of(child) == 35);
  const recording::Recording r = folder.read_one();
  CHECK(r.content.ended);
  CHECK(r.content.bad_chunks == 0);
  CHECK(count_rows(r, RecordType::kRange) == 2);
}

TEST_CASE("a fault while the recording ends: its handler ends the program, and what was recorded is found") {
  RecordFolder folder;
  fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    slr_config c = folder.config();
    if (slr_init(&c) != 0) _exit(92);
    for (int i = 0; i < 100; ++i) record_range(i);
    at_next_reading([] { exit(36); });  // slr_shutdown looks at the clock
    slr_shutdown();
    _exit(94);
  }
  CHECK(end_of(child) == 36);
  const recording::Recording r = folder.read_one();
  CHECK(r.content.bad_chunks == 0);
  CHECK(count_rows(r, RecordType::kRange) == 200);
}
