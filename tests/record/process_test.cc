// Programs start and end processes while they are recorded: fork without exec, exec, spawn, end in every way. The
// program ends as it would without a recorder, a child's records are in no file but the child's, and the parent's file
// is whole.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "record_fixture.h"

extern char** environ;

// AddressSanitizer calls this before it looks for leaks at exit. In a forked child it must not look: the search takes
// every lock of its allocator. A lock that a thread of the parent held at the fork is never released there (fork() of
// g++ 12's AddressSanitizer does not wait for these locks).
extern "C" int __lsan_is_turned_off();
static const pid_t program = getpid();
extern "C" int __lsan_is_turned_off() { return getpid() != program; }

namespace {

void record_range(int32_t micro_batch) {
  slr_job job = SLR_JOB(SLR_FORWARD, micro_batch, 0);
  slr_push_job(0, &job);
  slr_pop(0);
}

// Threads that record until they are told to stop, and how many ranges they recorded.
class Recording {
 public:
  explicit Recording(int threads) {
    for (int t = 0; t < threads; ++t)
      threads_.emplace_back([this] {
        for (bool first = true; !stop_.load(std::memory_order_relaxed); first = false) {
          for (int i = 0; i < 20; ++i) record_range(i);
          count_ += 20;
          begun_ += first;
          usleep(100);
        }
      });
    // A thread that starts takes locks of AddressSanitizer's allocator, which a child forked then would wait for.
    while (begun_.load() < threads) usleep(100);
    slr_flush(1000);
  }
  Recording(const Recording&) = delete;
  ~Recording() { stop(); }
  int64_t stop() {
    stop_ = true;
    for (std::thread& t : threads_)
      if (t.joinable()) t.join();
    return count_;
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> count_{0};
  std::atomic<int> begun_{0};
  std::vector<std::thread> threads_;
};

bool begin(const RecordFolder& folder, int32_t rank = 0) {
  slr_config c = folder.config(rank);
  c.ring_kb = 4096;
  return slr_init(&c) == 0;
}

pid_t run_by_vfork(const char* script) {
  const pid_t child = vfork();
  if (child != 0) return child;
  execl("/bin/sh", "sh", "-c", script, nullptr);
  _exit(9);
}

int64_t kept_or_dropped(const recording::Recording& r) {
  return count_rows(r, recording::RecordType::kRange) + static_cast<int64_t>(r.content.drops[SLR_DROP_RING_FULL]);
}

}  // namespace

TEST_CASE("children that are forked while threads record end, whatever ends them, and leave the parent's file whole") {
  RecordFolder folder;
  Shared<int64_t> counted;
  CHECK(in_child([&] {
          if (!begin(folder)) return 1;
          Recording threads(3);
          for (int i = 0; i < 40; ++i) {
            fflush(nullptr);  // exit() in the child would write it again
            const pid_t child = fork();
            if (child == 0) {
              record_range(1000);  // does nothing: the recording is the parent's
              slr_flush(100);
              if (i % 4 == 0) exit(40 + i);  // with what is to be done at exit
              if (i % 4 == 1) _exit(40 + i);
              if (i % 4 == 2) execl("/bin/sh", "sh", "-c", "exit $0", std::to_string(40 + i).c_str(), nullptr);
              slr_shutdown();
              _exit(40 + i);
            }
            if (end_of(child) != 40 + i) return 2;
          }
          *counted = threads.stop();
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(r.content.ended);
  CHECK(r.content.bad_chunks == 0);
  CHECK(kept_or_dropped(r) == *counted);
  for (const auto& row : r.content.rows) CHECK(row.micro_batch < 1000);
}

// ThreadSanitizer ends a child whose new thread lies where one of the parent's threads was ("dup thread with used id").
#ifdef __SANITIZE_THREAD__
constexpr bool kEndsChildren = true;
#else
constexpr bool kEndsChildren = false;
#endif

TEST_CASE("a forked child that begins a recording has a file of its own, and both are whole" *
          doctest::skip(kEndsChildren)) {
  RecordFolder folder;
  Shared<int64_t> counted;
  CHECK(in_child([&] {
          if (!begin(folder, 0)) return 1;
          Recording threads(2);
          const pid_t child = fork();
          if (child == 0) {
            if (!begin(folder, 1)) _exit(2);
            for (int i = 0; i < 500; ++i) record_range(2000 + i);
            std::thread([] { record_range(2500); }).join();
            exit(0);
          }
          if (end_of(child) != 0) return 3;
          *counted = threads.stop();
          return 0;
        }) == 0);
  const auto all = folder.read();
  REQUIRE(all.size() == 2);
  for (const auto& r : all) {
    CHECK(r.content.ended);
    CHECK(r.content.bad_chunks == 0);
    CHECK(kept_or_dropped(r) == (r.meta.rank == 0 ? *counted : 501));
    for (const auto& row : r.content.rows) CHECK((row.micro_batch >= 2000) == (r.meta.rank == 1));
  }
  CHECK(folder.files(".slhot").empty());
}

TEST_CASE("programs that are spawned inherit no file of the recorder's") {
  RecordFolder folder;
  CHECK(in_child([&] {
          if (!begin(folder)) return 1;
          Recording threads(2);
          const std::string list =
              "for f in /proc/self/fd/*; do readlink $f; done | grep -qF " + folder.path() + "; test $? = 1";
          for (int i = 0; i < 6; ++i) {
            const char* arguments[] = {"sh", "-c", list.c_str(), nullptr};
            pid_t child = -1;
            posix_spawn_file_actions_t quiet;
            posix_spawn_file_actions_init(&quiet);
            posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
            if (i % 2 == 0) {
              if (posix_spawn(&child, "/bin/sh", &quiet, nullptr, const_cast<char**>(arguments), environ) != 0)
                return 2;
            } else {
              child = run_by_vfork(list.c_str());
            }
            posix_spawn_file_actions_destroy(&quiet);
            if (end_of(child) != 0) return 3;
          }
          return 0;
        }) == 0);
  CHECK(folder.read_one().content.ended);
}

TEST_CASE("signals and _exit end a program as they would, and what it had recorded is found") {
  for (const int how : {0, SIGTERM, SIGABRT, SIGSEGV, SIGKILL}) {
    RecordFolder folder;
    Shared<std::atomic<int64_t>> counted;
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      signal(how == 0 ? SIGUSR1 : how, SIG_DFL);  // a sanitizer may have put its own
      if (!begin(folder)) _exit(1);
      for (int i = 0; i < 5000; ++i) {
        record_range(i);
        *counted = i + 1;
      }
      if (how == 0) _exit(7);
      raise(how);
      _exit(2);
    }
    CHECK(end_of(child) == (how == 0 ? 7 : 128 + how));
    const recording::Recording r = folder.read_one();
    CHECK(!r.content.ended);
    CHECK(r.content.bad_chunks == 0);
    CHECK(kept_or_dropped(r) == counted->load());
  }
}

TEST_CASE("a program that ends while its threads record ends as it says") {
  for (int i = 0; i < 12; ++i) {
    RecordFolder folder;
    fflush(nullptr);  // exit() in the child would write it again
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      if (!begin(folder)) _exit(1);
      auto* threads = new Recording(4);  // not joined: they record on while exit functions run
      if (i % 3 == 1) std::thread([] { exit(33); }).join();
      if (i % 3 == 2) slr_shutdown();
      static_cast<void>(threads);
      exit(33);
    }
    CHECK(end_of(child) == 33);
    CHECK(folder.read_one().content.ended);
  }
}
