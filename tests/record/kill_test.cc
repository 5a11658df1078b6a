// kill -9 at random moments: whatever a program had finished recording is found again, once.
#include <signal.h>
#include <time.h>

#include <atomic>
#include <random>

#include "record_fixture.h"

namespace {

struct ChildProgress {
  std::atomic<int64_t> recorded;  // ranges 0 … recorded − 1 have ended
  std::atomic<bool> started;
};

// Records ranges numbered 0, 1, … at about `rate` a second until it is killed.
[[noreturn]] void record_until_killed(const RecordFolder& folder, ChildProgress& progress, int rate, int32_t flush_ms) {
  slr_config c = folder.config();
  c.flush_ms = static_cast<uint32_t>(flush_ms);
  c.ring_kb = 4096;
  if (slr_init(&c) != 0) _exit(1);
  const slr_str name = slr_intern("range", 5);
  progress.started = true;
  const int burst = std::max(1, rate / 1000);
  for (int64_t number = 0;;) {
    for (int i = 0; i < burst; ++i, ++number) {
      slr_job job = SLR_JOB(SLR_FORWARD, static_cast<int32_t>(number), 0);
      job.name = name;
      slr_push_job(0, &job);
      slr_pop(0);
      progress.recorded.store(number + 1, std::memory_order_release);
    }
    const timespec nap = {0, 1'000'000};
    nanosleep(&nap, nullptr);
  }
}

}  // namespace

TEST_CASE("a killed process loses nothing that it had recorded") {
  std::mt19937 random(7);
  const int kills = slow_tests() ? 200 : 10;
  for (int i = 0; i < kills; ++i) {
    RecordFolder folder;
    Shared<ChildProgress> progress;
    const int rate = (int[]){20'000, 300'000, 1'000'000}[i % 3];
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) record_until_killed(folder, *progress, rate, i % 2 == 0 ? 1000 : 5);
    while (!progress->started) usleep(1000);
    usleep(static_cast<useconds_t>(random() % 200'000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    const int64_t recorded = progress->recorded.load();

    stageline::Diagnostics diagnostics;
    const auto all = folder.read(&diagnostics);
    REQUIRE(all.size() == 1);
    const recording::Recording& r = all[0];
    CHECK(!r.content.ended);
    CHECK(!r.hot_path.empty());
    CHECK(r.lost_slots == 0);
    CHECK(r.content.bad_chunks == 0);
    CHECK(diagnostics.count("recording.damaged") == 0);
    // In order, none missing but those that were counted as dropped, and at most one more than the program had counted.
    int64_t last = -1, wrong = 0;
    for (const auto& row : r.content.rows) {
      wrong += row.micro_batch <= last;
      last = row.micro_batch;
    }
    CHECK(wrong == 0);
    const auto kept = static_cast<int64_t>(r.content.rows.size()), dropped = r.content.drops[SLR_DROP_RING_FULL];
    CHECK(kept + dropped >= recorded);
    CHECK(kept + dropped <= recorded + 1);
    if (recorded > 0) CHECK(r.content.names.size() == 1);
  }
}

TEST_CASE("what was open when a process was killed is known") {
  RecordFolder folder;
  Shared<ChildProgress> progress;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    slr_config c = folder.config();
    if (slr_init(&c) != 0) _exit(1);
    slr_job job = SLR_JOB(SLR_RECV_FORWARD, 5, 0);
    slr_push(0, slr_intern("outer", 5));
    slr_begin(0, &job);
    progress->started = true;
    for (;;) pause();
  }
  while (!progress->started) usleep(1000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const recording::Recording r = folder.read_one();
  REQUIRE(r.open.size() == 2);
  CHECK(r.content.names.at(r.open[0].name) == "outer");
  CHECK(r.open[1].kind == SLR_RECV_FORWARD);
  CHECK(r.open[1].micro_batch == 5);
}

TEST_CASE("exec in mid-recording leaves what exec leaves, and the new program its own file") {
  RecordFolder folder;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    slr_config c = folder.config();
    if (slr_init(&c) != 0) _exit(1);
    slr_push(0, 0);
    slr_pop(0);
    execl("/bin/true", "true", nullptr);
    _exit(2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  const recording::Recording r = folder.read_one();
  CHECK(r.content.rows.size() == 1);
}

TEST_CASE("a recording that is being written is read whole, again and again") {
  RecordFolder folder;
  Shared<ChildProgress> progress;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) record_until_killed(folder, *progress, 20'000, 30);
  while (!progress->started) usleep(1000);
  for (int i = 0; i < 20; ++i) {
    usleep(20'000);
    const int64_t before = progress->recorded.load();
    const recording::Recording r = folder.read_one();
    const int64_t after = progress->recorded.load();
    const auto kept = static_cast<int64_t>(r.content.rows.size());
    CHECK(kept >= before);
    CHECK(kept <= after + 1);
    CHECK(r.lost_slots == 0);
    int64_t wrong = 0;
    for (int64_t k = 0; k < kept; ++k) wrong += r.content.rows[static_cast<size_t>(k)].micro_batch != k;
    CHECK(wrong == 0);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}
