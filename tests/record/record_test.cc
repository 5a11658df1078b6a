// Programs that strain a recorder: threads, signals, forks, full disks, invalid handles.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "record_fixture.h"
#include "stageline_record.hpp"

using recording::RecordType;

TEST_CASE("everything said of a job is in the recording") {
  RecordFolder folder;
  CHECK(in_child([&] {
          slr_config c = folder.config(7);
          c.stage = 3, c.dp_rank = 1, c.pp = 4, c.world = 8, c.job = "job-1";
          if (slr_init(&c) != 0) return 1;
          if (slr_init(&c) != 1) return 2;
          slr_step(41);
          const slr_str name = slr::intern("my name"), inner = slr::intern("inner");
          for (uint32_t kind = 0; kind <= SLR_LOAD; ++kind) {
            slr::Job job(static_cast<slr_kind>(kind), static_cast<int32_t>(kind) + 100, 2);
            job.named(kind == 5 ? name : 0).to(6, int64_t{1} << 40, 12);
            slr::Range range(job);
            slr::Scope scope(inner);
          }
          slr_counter(name, 2.5);
          slr_mark(0, inner);
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(r.meta.rank == 7);
  CHECK(r.meta.stage == 3);
  CHECK(r.meta.dp_rank == 1);
  CHECK(r.meta.job == "job-1");
  CHECK(r.content.ended);
  CHECK(r.hot_path.empty());
  CHECK(folder.files(".slhot").empty());
  REQUIRE(r.content.rows.size() == 1 + 2 * 13 + 2);
  CHECK(r.content.rows[0].type == RecordType::kStep);
  CHECK(r.content.rows[0].end == 41);
  for (uint32_t kind = 0; kind <= SLR_LOAD; ++kind) {
    const recording::Row &inner = r.content.rows[1 + 2 * kind], &job = r.content.rows[2 + 2 * kind];
    CHECK(r.content.names.at(inner.name) == "inner");
    CHECK(job.kind == kind);
    CHECK(job.micro_batch == static_cast<int32_t>(kind) + 100);
    CHECK(job.chunk == 2);
    CHECK(job.step == 41);
    CHECK(job.peer == 6);
    CHECK(job.bytes == int64_t{1} << 40);
    CHECK(job.sequence == 12);
    CHECK(job.start <= inner.start);
    CHECK(inner.end <= job.end);
    CHECK((job.name != 0) == (kind == 5));
  }
  CHECK(r.content.rows[27].type == RecordType::kCounter);
  CHECK(r.content.rows[28].type == RecordType::kInstant);
}

TEST_CASE("without a recording every call does nothing") {
  RecordFolder folder;
  CHECK(in_child([&] {
          const slr_str name = slr::intern("early");
          const slr_lane lane = slr_lane_host("queue");
          const auto all = [&] {
            slr_push(0, name);
            slr_pop(lane);
            slr_job job = SLR_JOB(SLR_FORWARD, 0, 0);
            slr_range range = slr_begin(lane, &job);
            if (range != 0) return 1;
            range = slr_switch(lane, range, &job);
            slr_end(12345);
            slr_step(3);
            slr_mark(0, name);
            slr_past(0, &job, 2, 1);
            slr_counter(name, 1);
            slr_window(1, 2);
            slr_name_thread("x");
            slr_lane_close(77777);
            slr_end(range);
            return slr_flush(10) + (*slr_path() != 0);
          };
          if (all() != 0) return 1;
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 2;
          slr_push(lane, name);  // of before: both are good
          slr_pop(lane);
          slr_shutdown();
          if (all() != 0) return 3;
          return stats_now().records == 1 ? 0 : 4;
        }) == 0);
  const recording::Recording r = folder.read_one();
  REQUIRE(r.content.rows.size() == 1);
  CHECK(r.content.names.at(r.content.rows[0].name) == "early");
  CHECK(r.content.lanes.at(r.content.rows[0].lane).name == "queue");
  CHECK(in_child([&] {
          setenv("STAGELINE_OFF", "1", 1);
          return slr_init(nullptr);
        }) == 2);
}

TEST_CASE("wrong handles are counted and harm nothing") {
  RecordFolder folder;
  Shared<slr_statistics> said;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 1;
          slr_job job = SLR_JOB(SLR_FORWARD, 0, 0);
          const slr_range range = slr_begin(0, &job);
          slr_end(range);
          slr_end(range);                        // twice
          slr_end(range ^ (uint64_t{9} << 40));  // never was
          slr_end(UINT64_MAX);
          slr_pop(0);
          for (int i = 0; i < 70; ++i) slr_push(0, 0);  // six too deep
          for (int i = 0; i < 70; ++i) slr_pop(0);
          slr_range open[70];
          for (auto& r : open) r = slr_begin(0, &job);
          for (const auto r : open) slr_end(r);
          slr_push(99999, 70000);  // no such lane or name: the thread's own, and none
          slr_pop(99999);
          *said = stats_now();
          return 0;
        }) == 0);
  CHECK(said->drops[SLR_DROP_BAD_HANDLE] == 4);
  CHECK(said->drops[SLR_DROP_TOO_DEEP] == 12);
  const recording::Recording r = folder.read_one();
  CHECK(r.content.rows.size() == 1 + 64 + 64 + 1);
  CHECK(r.content.drops[SLR_DROP_BAD_HANDLE] == 4);
  CHECK(r.content.drops[SLR_DROP_TOO_DEEP] == 12);
}

TEST_CASE("what somebody else timed stands where it was") {
  RecordFolder folder;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 1;
          slr_job job = SLR_JOB(SLR_COLLECTIVE, -1, -1);
          job.bytes = 4096;
          slr_past(0, &job, 40'000'000'000, 20'000'000'000);
          slr_past(0, &job, 1'000, 2'000'000);  // ends before it began: of no length
          slr_past(0, nullptr, UINT64_MAX, 0);  // before the clock began
          slr_push(0, 0);
          slr_pop(0);
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  REQUIRE(r.content.rows.size() == 4);
  const auto& past = r.content.rows[0];
  CHECK(past.bytes == 4096);
  CHECK(past.kind == SLR_COLLECTIVE);
  // The range lasted twenty seconds, twenty seconds ago.
  CHECK(past.end < r.content.rows[3].start);
  const double ratio =
      static_cast<double>(r.content.rows[3].start - past.end) / static_cast<double>(past.end - past.start);
  CHECK(ratio > 0.99);
  CHECK(ratio < 1.01);
  CHECK(r.content.rows[1].end == r.content.rows[1].start);
}

TEST_CASE("only the steps of the window, and pushes still match their pops") {
  RecordFolder folder;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 1;
          slr_window(2, 4);
          for (int step = 0; step < 6; ++step) {
            slr_push(0, 0);  // begins in the step before
            slr_step(step);
            slr_job job = SLR_JOB(SLR_FORWARD, step, 0);
            slr_end(slr_begin(0, &job));
            slr_pop(0);
          }
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(count_rows(r, RecordType::kStep) == 2);
  std::vector<int32_t> numbers;
  for (const auto& row : r.content.rows)
    if (row.type == RecordType::kRange) numbers.push_back(row.micro_batch);
  CHECK(numbers == std::vector<int32_t>{2, 3, -1, -1});  // the pushes that began in steps 2 and 3 end in 3 and 4
}

TEST_CASE("a full ring drops the newest and says how many") {
  RecordFolder folder;
  Shared<slr_statistics> said;
  static constexpr int kCalls = 200'000;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          c.ring_kb = 16;
          if (slr_init(&c) != 0) return 1;
          for (int i = 0; i < kCalls; ++i) {
            slr_push(0, 0);
            slr_pop(0);
          }
          *said = stats_now();
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(said->drops[SLR_DROP_RING_FULL] > 0);
  CHECK(static_cast<int64_t>(r.content.rows.size()) + r.content.drops[SLR_DROP_RING_FULL] == kCalls);
  CHECK(r.lost_slots == 0);
}

TEST_CASE("a thousand threads at once: each range is kept or counted") {
  RecordFolder folder;
  static constexpr int kThreads = 1000, kRanges = 20;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          c.memory_mb = 8;  // room for 30 threads
          if (slr_init(&c) != 0) return 1;
          std::atomic<int> started{0}, done{0};  // none ends before all are done, or its ring would serve another
          std::vector<std::thread> threads;
          for (int t = 0; t < kThreads; ++t)
            threads.emplace_back([&started, &done, t] {
              ++started;
              while (started.load() < kThreads) std::this_thread::yield();
              for (int i = 0; i < kRanges; ++i) {
                slr_job job = SLR_JOB(SLR_FORWARD, i, t);
                slr_push_job(0, &job);
                slr_pop(0);
              }
              ++done;
              while (done.load() < kThreads) std::this_thread::yield();
            });
          for (auto& thread : threads) thread.join();
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  // A thread without a ring asks at every call: a push and a pop are two. A full ring drops a range as one.
  CHECK(2 * (static_cast<int64_t>(r.content.rows.size()) + r.content.drops[SLR_DROP_RING_FULL]) +
            r.content.drops[SLR_DROP_NO_RING] + r.content.drops[SLR_DROP_BAD_HANDLE] ==
        2 * kThreads * kRanges);
  CHECK(r.content.drops[SLR_DROP_NO_RING] > 0);
  CHECK(r.content.rows.size() >= kRanges * 20);
}

TEST_CASE("threads that end give their rings on; what they left open is said") {
  RecordFolder folder;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          c.memory_mb = 1;  // three rings
          if (slr_init(&c) != 0) return 1;
          for (int t = 0; t < 50; ++t)
            std::thread([t] {
              slr_job job = SLR_JOB(SLR_FORWARD, t, 0);
              slr_push_job(0, &job);
              slr_push(0, 0);
              slr_pop(0);
              if (t % 2 == 0) slr_pop(0);
            }).join();
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(count_rows(r, RecordType::kRange) == 75);
  CHECK(count_rows(r, RecordType::kOpenRange) == 25);
  CHECK(r.content.drops[SLR_DROP_NO_RING] == 0);
}

TEST_CASE("ranges may end on other threads, each once") {
  RecordFolder folder;
  static constexpr int kRanges = 3000;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          c.ring_kb = 1024;
          if (slr_init(&c) != 0) return 1;
          std::atomic<uint64_t> slot{0};
          std::atomic<bool> done{false};
          const auto end_them = [&] {
            while (!done.load() || slot.load() != 0)
              if (const uint64_t range = slot.load(); range != 0) {
                slr_end(range);  // both threads try; one of them has it
                uint64_t expected = range;
                slot.compare_exchange_strong(expected, 0);
              }
          };
          std::thread a(end_them), b(end_them);
          for (int i = 0; i < kRanges; ++i) {
            slr_job job = SLR_JOB(SLR_BACKWARD, i, 0);
            const slr_range range = slr_begin(0, &job);
            if (range == 0) return 2;
            slot.store(range);
            while (slot.load() != 0) std::this_thread::yield();
          }
          done.store(true);
          a.join();
          b.join();
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  std::vector<int> seen(kRanges);
  for (const auto& row : r.content.rows) ++seen.at(static_cast<size_t>(row.micro_batch));
  CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
}

namespace {
std::atomic<int64_t> handled{0};
void record_in_handler(int) {
  slr_push(0, 0);
  slr_pop(0);
  ++handled;
}
}  // namespace

TEST_CASE("signal handlers record too, and what interrupts the recorder is counted") {
  RecordFolder folder;
  Shared<int64_t> counted(2);
  CHECK(in_child([&] {
          slr_config c = folder.config();
          c.ring_kb = 8192;
          if (slr_init(&c) != 0) return 1;
          struct sigaction action{};
          action.sa_handler = record_in_handler;
          sigaction(SIGUSR1, &action, nullptr);
          std::atomic<bool> done{false};
          const pthread_t target = pthread_self();
          std::thread sender([&] {
            for (int i = 0; i < 2000; ++i) pthread_kill(target, SIGUSR1);
            done = true;
          });
          int64_t calls = 0;
          for (; !done.load() && calls < 100'000; ++calls) {
            slr_push(0, 0);
            slr_pop(0);
          }
          sender.join();
          counted[0] = calls + handled.load();
          counted[1] = static_cast<int64_t>(stats_now().drops[SLR_DROP_REENTRANT]);
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(2 * static_cast<int64_t>(r.content.rows.size()) + counted[1] + 2 * r.content.drops[SLR_DROP_RING_FULL] ==
        2 * counted[0]);
  CHECK(r.content.drops[SLR_DROP_BAD_HANDLE] == 0);
}

TEST_CASE("a forked child records nothing, and a file of its own where it is asked to") {
  for (const bool wanted : {false, true}) {
    RecordFolder folder;
    CHECK(in_child([&] {
            if (wanted) setenv("STAGELINE_FORK", "1", 1);
            slr_config c = folder.config();
            if (slr_init(&c) != 0) return 1;
            slr_push(0, slr::intern("parent"));
            for (int i = 0; i < 3; ++i) {
              const pid_t child = fork();
              if (child == 0) {
                slr_pop(0);
                slr_push(0, slr::intern("child"));
                slr_pop(0);
                slr_flush(1000);
                slr_shutdown();
                _exit(0);
              }
              waitpid(child, nullptr, 0);
            }
            slr_pop(0);
            return 0;
          }) == 0);
    const auto all = folder.read();
    REQUIRE(all.size() == (wanted ? 4 : 1));
    int parents = 0, children = 0;
    for (const auto& r : all)
      for (const auto& row : r.content.rows)
        if (row.type == RecordType::kRange) ++(r.content.names.at(row.name) == "parent" ? parents : children);
    CHECK(parents == 1);
    CHECK(children == (wanted ? 3 : 0));
  }
}

TEST_CASE("a folder that cannot be made is an error and no more") {
  RecordFolder folder;
  std::ofstream(folder.path() + "/file") << "x";
  const std::string below = folder.path() + "/file/below";
  CHECK(in_child([&] {
          slr_config c = folder.config();
          c.dir = below.c_str();
          const int result = slr_init(&c);
          slr_push(0, 0);
          slr_pop(0);
          return result;
        }) == 3);
}

TEST_CASE("a full disk delays, and loses only what the rings cannot hold") {
  RecordFolder folder;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          c.flush_ms = 10;
          if (slr_init(&c) != 0) return 1;
          signal(SIGXFSZ, SIG_IGN);
          rlimit limit;
          getrlimit(RLIMIT_FSIZE, &limit);
          const rlimit none = {0, limit.rlim_max};
          for (int i = 0; i < 100; ++i) {
            slr_job job = SLR_JOB(SLR_FORWARD, i, 0);
            slr_push_job(0, &job);
            slr_pop(0);
          }
          if (slr_flush(60'000) != 0) return 2;
          setrlimit(RLIMIT_FSIZE, &none);
          for (int i = 100; i < 200; ++i) {
            slr_job job = SLR_JOB(SLR_FORWARD, i, 0);
            slr_push_job(0, &job);
            slr_pop(0);
          }
          if (slr_flush(100) != 1) return 3;  // not written, and it says so
          if (!write_fails()) return 4;
          setrlimit(RLIMIT_FSIZE, &limit);
          return slr_flush(60'000);
        }) == 0);
  const recording::Recording r = folder.read_one();
  REQUIRE(r.content.rows.size() == 200);
  for (int i = 0; i < 200; ++i) CHECK(r.content.rows[static_cast<size_t>(i)].micro_batch == i);
  CHECK(r.lost_slots == 0);
  CHECK(r.content.ended);
}

namespace {

// A disk of its own, of 256 KiB, at `path`; only for this process. False: the system does not allow it.
bool mount_small_disk(const std::string& path) {
  const uid_t user = getuid();
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (user != 0) std::ofstream("/proc/self/uid_map") << "0 " << user << " 1\n";
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("none", path.c_str(), "tmpfs", 0, "size=256k") == 0;
}

}  // namespace

TEST_CASE("a disk that fills up for good: the file says how much was lost, and so does one line") {
  RecordFolder folder, copies;
  const std::string said = copies.path() + "/said";
  const int code = in_child([&] {
    if (!mount_small_disk(folder.path())) return 99;
    const int fd = open(said.c_str(), O_WRONLY | O_CREAT, 0644);
    dup2(fd, 2);
    slr_config c = folder.config();
    c.flush_ms = 5;
    c.ring_kb = 64;
    setenv("STAGELINE_HOT_DIR", copies.path().c_str(), 1);
    if (slr_init(&c) != 0) return 1;
    for (int i = 0; i < 200'000; ++i) {
      slr_job job = SLR_JOB(SLR_FORWARD, i, 0);
      slr_push_job(0, &job);
      slr_pop(0);
      if (i % 2000 == 0) usleep(1000);
    }
    const std::string path = slr_path();
    slr_shutdown();
    // The disk goes with this process: what is on it is copied.
    std::filesystem::copy_file(path, copies.path() + "/left.000.slrec");
    return 0;
  });
  if (code == 99) {
    MESSAGE("note: no disk could be mounted here; a full one was not tried");
    return;
  }
  REQUIRE(code == 0);
  std::ifstream in(said);
  const std::string line{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  CHECK(std::count(line.begin(), line.end(), '\n') == 1);
  CHECK(line.find("records were dropped") != std::string::npos);
  CHECK(line.find("No space left on device") != std::string::npos);
  const auto cold = recording::read_cold(copies.path() + "/left.000.slrec", nullptr);
  REQUIRE(cold);
  CHECK_FALSE(cold->counts.torn);
  CHECK(cold->drops[SLR_DROP_RING_FULL] > 0);  // the file itself says it
  const int64_t stated_dropped = std::stoll(line.substr(line.rfind(": ", line.find("records")) + 2));
  CHECK(cold->drops[SLR_DROP_RING_FULL] == stated_dropped);
}

TEST_CASE("room that the recorder kept and did not need goes back to the disk") {
  RecordFolder folder;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 1;
          slr_push(0, 0);
          slr_pop(0);
          return 0;
        }) == 0);
  struct stat facts;
  REQUIRE(stat(folder.files(".slrec")[0].c_str(), &facts) == 0);
  CHECK(facts.st_blocks * 512 <= facts.st_size + 2 * facts.st_blksize);
}

TEST_CASE("files follow each other, each readable alone; the oldest go where few are to be kept") {
  for (const uint32_t keep : {0u, 2u}) {
    RecordFolder folder;
    static constexpr int kRanges = 600'000;
    CHECK(in_child([&] {
            slr_config c = folder.config();
            c.rotate_mb = 1;
            c.keep_files = keep;
            c.ring_kb = 4096;
            if (slr_init(&c) != 0) return 1;
            const slr_str name = slr::intern("range");
            for (int i = 0; i < kRanges; ++i) {
              slr_job job = SLR_JOB(SLR_FORWARD, i, 0);
              job.name = name;
              slr_push_job(0, &job);
              slr_pop(0);
              if (i % 20'000 == 0) slr_flush(60'000);
            }
            return 0;
          }) == 0);
    const auto files = folder.files(".slrec");
    REQUIRE(files.size() >= 2);
    const recording::Recording r = folder.read_one();
    CHECK(r.lost_slots == 0);
    if (keep == 0) {
      CHECK(files.size() > 3);
      CHECK(static_cast<int64_t>(r.content.rows.size()) + r.content.drops[SLR_DROP_RING_FULL] == kRanges);
      const auto alone = recording::read_cold(files[2], nullptr);
      REQUIRE(alone);
      CHECK(alone->names.size() == 1);
      CHECK(!alone->lanes.empty());
      CHECK(!alone->snapshots.empty());
    } else {
      CHECK(files.size() <= 3);
      CHECK(r.content.rows.size() < kRanges);
      CHECK(r.content.rows.back().micro_batch == kRanges - 1);
    }
  }
}

TEST_CASE("a recorder can be stopped and started again") {
  RecordFolder folder;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          for (int i = 0; i < 3; ++i) {
            if (slr_init(&c) != 0) return 1;
            slr_job job = SLR_JOB(SLR_FORWARD, i, 0);
            const slr_range old = slr_begin(0, &job);
            slr_push_job(0, &job);
            slr_pop(0);
            slr_shutdown();
            slr_end(old);
          }
          return 0;
        }) == 0);
  const auto all = folder.read();
  REQUIRE(all.size() == 3);
  for (const auto& r : all) CHECK(count_rows(r, RecordType::kRange) == 1);
}

TEST_CASE("statistics count records, however many places they take, written or not") {
  RecordFolder folder;
  CHECK(in_child([&] {
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 1;
          slr_job plain = SLR_JOB(SLR_FORWARD, 0, 0), message = SLR_JOB(SLR_SEND_FORWARD, 0, 0);
          message.peer = 1;
          message.bytes = 4096;
          for (int i = 0; i < 100; ++i) {
            slr_end(slr_begin(0, &plain));
            slr_end(slr_begin(0, &message));
            slr_mark(0, 0);
          }
          if (stats_now().records != 300) return 2;
          if (slr_flush(10'000) != 0) return 3;
          if (stats_now().records != 300 || stats_now().written_records != 300) return 4;
          slr_end(slr_begin(0, &message));
          if (stats_now().records != 301) return 5;
          slr_shutdown();
          return stats_now().records == 301 ? 0 : 6;
        }) == 0);
  CHECK(folder.read_one().content.rows.size() == 301);
}
