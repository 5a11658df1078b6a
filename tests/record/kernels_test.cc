// Kernels by CUPTI's injection, against a CUPTI that has what the test orders.
#include <cmath>
#include <filesystem>

#include "cupti_client.h"
#include "readers/recording/clocks.h"

using recording::RecordType;

namespace {

int64_t named(const recording::Recording& r, const std::string& name) {
  return std::count_if(r.content.rows.begin(), r.content.rows.end(), [&](const auto& row) {
    const auto text = r.content.names.find(row.name);
    return text != r.content.names.end() && text->second == name;
  });
}

}  // namespace

TEST_CASE("kernels are recorded where and when CUPTI says they ran, by the names people know") {
  RecordFolder folder;
  Shared<int64_t> truth(2);
  constexpr int kMany = 12'000;  // more than a ring or a buffer holds
  CHECK(with_kernels(folder, [&](InjectedLibrary& library, Cupti& cupti) {
          if (inject(library) != 1 || inject(library) != 1 || !is_enabled(cupti)) return 1;
          truth[0] = realtime_ns();
          for (int i = 0; i < kMany; ++i) cupti.run("_Z4gemmIfEvPT_i", 5000);
          truth[1] = realtime_ns();
          const int64_t now = realtime_ns();
          cupti.kernel("plain_name", now - 1000, now, 3, 20);
          cupti.copy(1, 4096, now - 2000, now - 1000, 7);
          cupti.kernel("no times", 0, 0, 0, 7);
          cupti.kernel("backwards", now, now - 1, 0, 7);
          cupti.kernel(nullptr, now - 10, now, 0, 7);
          if (cupti.fake->registered != 1) return 2;
          return 0;  // what was not flushed is CUPTI's until the end
        }) == 0);
  const recording::Recording r = folder.read_one();
  CHECK(r.meta.rank == 2);
  CHECK(r.meta.kernels == "recorded");
  CHECK(r.content.ended);
  CHECK(r.content.drops[SLR_DROP_RING_FULL] == 0);
  CHECK(r.content.drops[SLR_DROP_KERNELS] == 2);
  CHECK(named(r, "void gemm<float>(float*, int)") == kMany);
  CHECK(named(r, "plain_name") == 1);
  CHECK(named(r, "Memcpy HtoD") == 1);
  CHECK(count_rows(r, RecordType::kRange) == kMany + 3);
  const recording::Clocks clocks(r.content.snapshots, r.content.anchors, r.meta.ticks_per_second,
                                 r.meta.start_realtime_ns);
  int64_t late = 0;
  for (const auto& row : r.content.rows) {
    const recording::LaneRow& lane = r.content.lanes.at(row.lane);
    CHECK(lane.device_kind == 5);
    const int64_t start = clocks.host_ns(row.start), end = clocks.host_ns(row.end);
    if (row.bytes >= 0) CHECK(row.bytes == 4096);
    if (lane.stream == 20) CHECK(lane.name == "GPU 3 stream 20");
    if (r.content.names.find(row.name) == r.content.names.end() || lane.stream != 7 || row.bytes >= 0) continue;
    CHECK(std::abs(end - start - 5000) <= 50);
    late += start < truth[0] - 5000 - 100'000 || end > truth[1] + 100'000;
  }
  CHECK(late == 0);
}

TEST_CASE("only the steps that are recorded have kernels, and each kernel its step") {
  RecordFolder folder;
  CHECK(with_kernels(folder, [&](InjectedLibrary& library, Cupti& cupti) {
          setenv("STAGELINE_STEPS", "2:3", 1);
          if (inject(library) != 1) return 1;
          usleep(120'000);
          if (cupti.fake->subscribes != 0) return 2;  // no recording has been started
          slr_config c = folder.config(2);
          if (library.init(&c) != 0) return 3;
          for (int step = 0; step < 6; ++step) {
            library.step(step);
            if (step == 2 && !is_enabled(cupti)) return 4;
            for (int i = 0; i < 5; ++i) {
              usleep(1000);
              cupti.run("work", 100'000);
            }
            if (step == 4 && !wait_for([&] { return !cupti.fake->subscribed; })) return 5;
          }
          return 0;
        }) == 0);
  const recording::Recording r = folder.read_one();
  std::map<int32_t, int> steps;
  for (const auto& row : r.content.rows)
    if (row.type == RecordType::kRange) ++steps[row.step];
  CHECK(steps[2] == 5);
  CHECK(steps[3] == 5);
  CHECK(steps.count(0) + steps.count(1) + steps.count(5) == 0);
  CHECK(steps[4] <= 5);  // until the window's end was seen
  CHECK(r.meta.kernels == "recorded");
}

TEST_CASE("kernels are bounded in time and number, and CUPTI is free afterwards") {
  for (const bool by_time : {true, false}) {
    RecordFolder folder;
    CHECK(with_kernels(folder, [&](InjectedLibrary& library, Cupti& cupti) {
            setenv(by_time ? "STAGELINE_KERNELS_S" : "STAGELINE_KERNELS_MAX", by_time ? "0.5" : "100", 1);
            if (inject(library) != 1 || !is_enabled(cupti)) return 1;
            const bool over = wait_for([&] {
              cupti.run("work", 1000);
              return !cupti.fake->subscribed;
            });
            if (!over) return 2;
            const uint64_t before = library.statistics().records;
            for (int i = 0; i < 200; ++i) cupti.run("afterwards", 1000);
            usleep(120'000);
            return library.statistics().records == before ? 0 : 3;
          }) == 0);
    const recording::Recording r = folder.read_one();
    CHECK(r.meta.kernels == (by_time ? "STAGELINE_KERNELS_S is over" : "STAGELINE_KERNELS_MAX is reached"));
    CHECK(named(r, "work") >= (by_time ? 1 : 100));  // of half a second a busy machine may leave little
    CHECK(named(r, "afterwards") == 0);
  }
}

TEST_CASE("a profiler that is there before keeps CUPTI, and is called") {
  RecordFolder folder;
  CHECK(with_kernels(folder, [&](InjectedLibrary& library, Cupti& cupti) {
          setenv("STAGELINE_CHAIN_CUDA", kFakeCupti, 1);
          slr_config c = folder.config(2);
          if (library.init(&c) != 0) return 1;
          const ptrdiff_t before = threads();
          if (inject(library) != 1) return 1;
          if (cupti.fake->injections != 1 || !wait_for([&] { return cupti.fake->subscribes == 2; })) return 2;
          if (!wait_for([&] { return threads() == before; })) return 3;  // the thread of kernels gave up
          return cupti.fake->subscribed && cupti.fake->registered == 0 && cupti.fake->enables == 0 ? 0 : 4;
        }) == 0);
  CHECK(folder.read_one().meta.kernels == "another tool uses CUPTI");
}

TEST_CASE("without CUPTI, or with one that refuses, the rest is recorded and the reason said") {
  for (const int how : {0, 1, 2}) {
    RecordFolder folder;
    CHECK(with_kernels(folder, [&](InjectedLibrary& library, Cupti& cupti) {
            if (how == 0) setenv("STAGELINE_CUPTI", "/no/such/libcupti.so", 1);
            if (how == 1) cupti.fake->subscribe_error = 999;
            if (how == 2) cupti.fake->enable_error = 999;
            slr_config c = folder.config(2);
            if (library.init(&c) != 0) return 1;
            const ptrdiff_t before = threads();
            if (inject(library) != 1) return 1;
            if (!wait_for([&] { return threads() == before; })) return 3;  // the thread of kernels gave up
            library.step(0);
            return cupti.fake->subscribed ? 2 : 0;
          }) == 0);
    const recording::Recording r = folder.read_one();
    CHECK(r.meta.kernels == (how == 0 ? "CUPTI is not there" : "CUPTI refused"));
    CHECK(count_rows(r, RecordType::kStep) == 1);
  }
}

TEST_CASE("a process that uses CUDA and runs no kernel gets no file; a child that forks does not fall over") {
  RecordFolder folder;
  CHECK(with_kernels(folder, [&](InjectedLibrary& library, Cupti& cupti) {
          if (inject(library) != 1 || !is_enabled(cupti)) return 1;
          const pid_t child = fork();
          if (child == 0) {
            library.shutdown();
            _exit(inject(library) == 1 ? 0 : 1);
          }
          int status = 0;
          waitpid(child, &status, 0);
          return status;
        }) == 0);
  CHECK(folder.files(".slrec").empty());
}
