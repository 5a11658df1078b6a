// Ranges of captured graphs, against a driver whose one graph is replayed to order.
#include <signal.h>

#include "device_fixture.h"

TEST_CASE("captured ranges are recorded at every replay, in its step") {
  RecordFolder folder;
  Shared<Truth> truth;
  constexpr int kReplays = 60;
  CHECK(in_child([&] {
          setenv("STAGELINE_GRAPHS", "1", 1);
          Driver driver;
          driver.gpu->offset_ns = 1e12;
          driver.gpu->ppm = 40;
          const auto launch = reinterpret_cast<FakeLaunchFunction>(dlsym(driver.library, "fake_launch"));
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 1;
          void* stream = driver.stream();
          const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
          usleep(50'000);
          driver.gpu->capturing = true;
          slr_range range = 0;
          for (int k = 0; k < 3; ++k) {  // F0 B0 F1, back to back, with 100, 200, 300 µs of work
            slr_job job = SLR_JOB(k % 2 ? SLR_BACKWARD : SLR_FORWARD, k / 2, 0);
            range = slr_switch(lane, range, &job);
            driver.kernel(stream, 100'000 * (k + 1));
          }
          slr_end(range);
          driver.gpu->capturing = false;
          slr_flush(1000);
          if (stats_now().device_ranges != 0) return 2;  // a capture runs nothing
          for (int i = 0; i < kReplays; ++i) {
            slr_step(i);
            launch(stream);
            truth->end_ns[i] = driver.last(stream);
            usleep(20'000);
          }
          usleep(20'000);
          finish(driver, *truth);
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(r.content.drops[SLR_DROP_CAPTURE] == 3);
  CHECK(host_instead_rows(r) == 3);
  const recording::Clocks clocks(r.content.snapshots, r.content.anchors, r.meta.ticks_per_second,
                                 r.meta.start_realtime_ns);
  std::vector<recording::Line::Point> raw;
  for (const auto& s : r.content.snapshots) raw.push_back({s.raw_ns, clocks.host_ns(s.ticks)});
  const recording::Line axis(raw, 1);
  int64_t bound = 0, seen = 0;
  errors_ns(r, *truth, &bound);
  std::map<int32_t, std::vector<const recording::Row*>> steps;
  for (const auto& row : r.content.rows)
    if (row.device_times) steps[row.step].push_back(&row), ++seen;
  CHECK(seen > kReplays * 3 / 4);  // on a busy machine many are overtaken by the next
  for (const auto& [step, rows] : steps) {
    INFO(step);
    REQUIRE((step >= 0 && step < kReplays && rows.size() <= 3));
    for (const auto* row : rows) {
      const int k = row->kind == SLR_BACKWARD ? 1 : row->micro_batch * 2;
      CHECK(std::abs(row->end - row->start - 100'000 * (k + 1)) <= 200);
      const int64_t end = truth->end_ns[step] - (k == 0 ? 500'000 : k == 1 ? 300'000 : 0);
      CHECK(std::abs(clocks.device_ns(1, row->end) - axis.at(end)) <= bound);
    }
  }
}

TEST_CASE("a kill keeps the replays that were seen; the capture's events serve nothing else") {
  RecordFolder folder;
  Shared<int64_t> done;
  fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("STAGELINE_GRAPHS", "1", 1);
    Driver driver;
    const auto launch = reinterpret_cast<FakeLaunchFunction>(dlsym(driver.library, "fake_launch"));
    slr_config c = folder.config();
    c.flush_ms = 60'000;
    if (slr_init(&c) != 0) _exit(1);
    void* stream = driver.stream();
    const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
    usleep(50'000);
    slr_job job = SLR_JOB(SLR_FORWARD, 5, 0);
    driver.gpu->capturing = true;
    const slr_range range = slr_begin(lane, &job);
    driver.kernel(stream, 50'000);
    slr_end(range);
    driver.gpu->capturing = false;
    slr_flush(1000);
    for (int i = 0; i < 20; ++i) {
      launch(stream);
      usleep(20'000);
      slr_end(slr_begin(lane, &job));
    }
    *done = 1;
    for (;;) pause();
  }
  for (int i = 0; i < 10'000 && *done == 0; ++i) usleep(1000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const recording::Recording r = folder.read_one();
  int64_t replays = 0;
  for (const auto& row : r.content.rows) {
    CHECK(row.micro_batch == 5);
    if (row.device_times && row.end - row.start >= 40'000) ++replays;
  }
  CHECK(replays >= 5);  // of 20: as above
  CHECK(static_cast<int64_t>(r.content.rows.size()) == 1 + 20 + replays);
}

TEST_CASE("looking at events breaks no capture of the program") {
  RecordFolder folder;
  CHECK(in_child([&] {
          Driver driver;
          slr_config c = folder.config();
          if (slr_init(&c) != 0) return 1;
          void* stream = driver.stream();
          const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
          slr_job job = SLR_JOB(SLR_FORWARD, 0, 0);
          const slr_range range = slr_begin(lane, &job);
          driver.kernel(stream, 300'000'000);
          slr_end(range);
          const int64_t before = driver.gpu->queries;
          driver.gpu->capturing = true;
          for (int i = 0; i < 5000 && driver.gpu->queries < before + 5; ++i) slr_flush(1);
          driver.gpu->capturing = false;
          if (driver.gpu->queries < before + 5) return 2;
          return driver.gpu->broken_captures == 0 ? 0 : 3;
        }) == 0);
  CHECK(device_rows(folder.read_one()) == 1);
}
