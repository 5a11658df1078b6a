// recorder_bench FOLDER [FAKE_DRIVER [BURSTS]] measures a call of the recorder while it writes to disk. JSON on stdout.
//
// It makes bursts of 2 000 pairs of calls, then a pause, like a program that does other work too. Each pair is timed by
// the processor's counter; the cost of reading the counter is measured the same way and subtracted. Times are counted
// in a histogram, not kept in a list. Such a list does not fit into a cache. Every eighth store to it, which misses,
// would delay the recorder's own stores behind it and look like their cost (130 ns in one call of eight). With
// FAKE_DRIVER (tests/record's libcuda.so.1) it also measures ranges on a stream, and the driver's calls alone.
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "inject/nvtx_abi.h"
#include "stageline_record.h"

extern "C" int InitializeInjectionNvtx2(slr::nvtx::GetExportTable get);
extern "C" int InitInjectionMstx(int (*get)(unsigned module, slr::nvtx::FunctionTable* table, unsigned* size));

#if defined(__x86_64__)
#include <x86intrin.h>
static uint64_t counter() { return __rdtsc(); }
#else
static uint64_t counter() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}
#endif

namespace {

constexpr int kBurst = 2000;
int bursts = 250;

double ns_per_tick() {
  timespec a, b;
  clock_gettime(CLOCK_MONOTONIC_RAW, &a);
  const uint64_t start = counter();
  usleep(200'000);
  clock_gettime(CLOCK_MONOTONIC_RAW, &b);
  const uint64_t end = counter();
  return (static_cast<double>(b.tv_sec - a.tv_sec) * 1e9 + static_cast<double>(b.tv_nsec - a.tv_nsec)) /
         static_cast<double>(end - start);
}

struct Cost {
  double median_ns, p99_ns, mean_ns;
};

// Counts calls by their ticks; calls longer than the last bin are rare and long.
class Times {
 public:
  void add(uint64_t ticks) { ++counts_[ticks < kMost ? ticks : kMost - 1], ++all_; }
  double share_ns(double share, uint64_t reading_ticks, double tick_ns) const {
    auto wanted = static_cast<uint64_t>(share * static_cast<double>(all_ - 1));
    uint64_t ticks = 0;
    for (; ticks < kMost - 1 && counts_[ticks] <= wanted; ++ticks) wanted -= counts_[ticks];
    return static_cast<double>(ticks > reading_ticks ? ticks - reading_ticks : 0) * tick_ns;
  }

 private:
  static constexpr uint64_t kMost = 1 << 15;
  std::vector<uint32_t> counts_ = std::vector<uint32_t>(kMost);
  uint64_t all_ = 0;
};

// `mean` of the bursts' least: what the loop costs a call when nothing else runs.
template <class Call>
Cost measure(double tick_ns, uint64_t reading_ticks, Call call) {
  Times times;
  uint64_t min = UINT64_MAX;
  for (int burst = 0; burst < bursts; ++burst) {
    const uint64_t burst_start = counter();
    uint64_t before = burst_start;
    for (int i = 0; i < kBurst; ++i) {
      call(i);
      const uint64_t after = counter();
      times.add(after - before);
      before = counter();
    }
    min = std::min(min, before - burst_start);
    usleep(5000);
  }
  return {times.share_ns(0.5, reading_ticks, tick_ns), times.share_ns(0.99, reading_ticks, tick_ns),
          static_cast<double>(min) / kBurst * tick_ns};
}

void print(const char* name, const Cost& cost, const char* end = ",\n") {
  printf(" \"%s\": {\"median_ns\": %.1f, \"p99_ns\": %.1f, \"best_burst_ns\": %.1f}%s", name, cost.median_ns,
         cost.p99_ns, cost.mean_ns, end);
}

// A program that uses NVTX, as far as its table of pointers.
slr::nvtx::Function nvtx_core[16];
slr::nvtx::Function* nvtx_places[17];
const void* nvtx_table(uint32_t id) {
  static const slr::nvtx::Callbacks callbacks = {sizeof callbacks,
                                                 [](uint32_t module, slr::nvtx::FunctionTable* table, unsigned* size) {
                                                   if (module != slr::nvtx::kCore) return 0;
                                                   for (int i = 1; i < 16; ++i) nvtx_places[i] = &nvtx_core[i];
                                                   return *table = nvtx_places, *size = 16, 1;
                                                 }};
  return id == slr::nvtx::kCallbacks ? &callbacks : nullptr;
}

// Does the same for mstx.
slr::nvtx::Function mstx_core[5];
slr::nvtx::Function* mstx_places[6];
int mstx_table(unsigned module, slr::nvtx::FunctionTable* table, unsigned* size) {
  if (module != 1) return 1;
  for (int i = 1; i < 5; ++i) mstx_places[i] = &mstx_core[i];
  return *table = mstx_places, *size = 5, 0;
}

slr_statistics stats_now() {
  slr_statistics s;
  memset(&s, 0, sizeof s);
  s.size = sizeof s;
  slr_stats(&s);
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (argc > 3) bursts = std::max(1, std::atoi(argv[3]));
  const double tick_ns = ns_per_tick();
  const Cost reading = measure(1, 0, [](int) { asm volatile("" ::: "memory"); });
  const auto reading_ticks = static_cast<uint64_t>(reading.median_ns);
  slr_config config = SLR_CONFIG_INIT;
  config.dir = argv[1];
  config.rank = 0;
  config.max_overhead = -1;
  if (slr_init(&config) != 0) return 1;
  const slr_str name = slr_intern("forward", 7);
  printf("{");
  print("off_by_window", (slr_window(1, 2), measure(tick_ns, reading_ticks, [&](int) {
                            slr_push(0, name);
                            slr_pop(0);
                          })));
  slr_window(-1, 0);
  print("push_pop", measure(tick_ns, reading_ticks, [&](int) {
          slr_push(0, name);
          slr_pop(0);
        }));
  slr_flush(5000);
  const slr_statistics plain = stats_now();
  print("push_job_pop", measure(tick_ns, reading_ticks, [&](int i) {
          slr_job job = SLR_JOB(SLR_FORWARD, i % 32, 0);
          slr_push_job(0, &job);
          slr_pop(0);
        }));
  if (!InitializeInjectionNvtx2(nvtx_table)) return 1;
  const auto nvtx_push = reinterpret_cast<int (*)(const char*)>(nvtx_core[slr::nvtx::kRangePushA]);
  const auto nvtx_pop = reinterpret_cast<int (*)()>(nvtx_core[slr::nvtx::kRangePop]);
  print("nvtx_push_pop", measure(tick_ns, reading_ticks, [&](int) {
          nvtx_push("forward_step");
          nvtx_pop();
        }));
  print("begin_end", measure(tick_ns, reading_ticks, [&](int i) {
          slr_job job = SLR_JOB(SLR_BACKWARD, i % 32, 0);
          slr_end(slr_begin(0, &job));
        }));
  setenv("STAGELINE_MSTX", "1", 1);
  if (InitInjectionMstx(mstx_table) != 0) return 1;
  const auto mstx_start = reinterpret_cast<uint64_t (*)(const char*, void*)>(mstx_core[2]);
  const auto mstx_end = reinterpret_cast<void (*)(uint64_t)>(mstx_core[3]);
  print("mstx_start_end", measure(tick_ns, reading_ticks, [&](int) { mstx_end(mstx_start("forward_step", nullptr)); }));
  slr_flush(5000);
  const slr_statistics before_jobs = stats_now();
  // As a pipeline has them: jobs of some hundred microseconds with messages between, at about 3 000 a second.
  for (int i = 0; i < 12 * bursts; ++i) {
    slr_job job = SLR_JOB(i % 2 ? SLR_BACKWARD : SLR_FORWARD, i / 2 % 32, i % 4 / 2);
    const slr_range range = slr_begin(0, &job);
    usleep(200);
    slr_end(range);
    usleep(30);
  }
  slr_flush(5000);
  const slr_statistics after_jobs = stats_now();
  const auto per_record = [](const slr_statistics& a, const slr_statistics& b) {
    return static_cast<double>(b.written_bytes - a.written_bytes) /
           static_cast<double>(b.written_records - a.written_records);
  };
  if (argc > 2) {
    void* driver = dlopen(argv[2], RTLD_NOW);
    const auto make_stream = reinterpret_cast<void* (*)()>(driver ? dlsym(driver, "fake_stream") : nullptr);
    const auto capturing =
        reinterpret_cast<int (*)(void*, int*)>(driver ? dlsym(driver, "cuStreamIsCapturing") : nullptr);
    const auto create = reinterpret_cast<int (*)(void**, unsigned)>(driver ? dlsym(driver, "cuEventCreate") : nullptr);
    const auto record = reinterpret_cast<int (*)(void*, void*)>(driver ? dlsym(driver, "cuEventRecord") : nullptr);
    if (!make_stream || !capturing || !create || !record) return 1;
    void* stream = make_stream();
    std::vector<void*> events(256);  // as many as the recorder has in its pool: one alone would stay in the cache
    for (void*& event : events) create(&event, 0);
    size_t next_event = 0;
    const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
    usleep(100'000);
    // Few at a time: the pool of events is for jobs, not for bursts of thousands. The driver's calls alone in turn with
    // them, so that both come back to caches that others have used.
    Times alone, times;
    for (int burst = 0; burst < 8 * bursts; ++burst) {
      for (int i = 0; i < 50; ++i) {
        slr_job job = SLR_JOB(SLR_FORWARD, i, 0);
        const uint64_t before = counter();
        if (burst % 2 == 0) {
          for (int k = 0; k < 2; ++k) {
            int status = 0;
            capturing(stream, &status);
            record(events[next_event++ % events.size()], stream);
          }
        } else {
          slr_end(slr_begin(lane, &job));
        }
        (burst % 2 == 0 ? alone : times).add(counter() - before);
      }
      usleep(4000);
    }
    const auto print_device = [&](const char* key, const Times& of) {
      const auto at = [&](double share) { return of.share_ns(share, reading_ticks, tick_ns); };
      print(key, {at(0.5), at(0.99), at(0)});
    };
    print_device("driver_alone", alone);
    print_device("device_range", times);
  }
  slr_flush(5000);
  const slr_statistics end = stats_now();
  uint64_t dropped = 0, host_instead = 0;
  for (int reason = 0; reason < SLR_DROP_REASONS; ++reason)
    (reason < SLR_DROP_CAPTURE ? dropped : host_instead) += end.drops[reason];
  printf(
      " \"bytes_a_job\": %.2f, \"bytes_a_push\": %.2f, \"records\": %llu, \"dropped\": %llu, \"host_instead\": %llu, "
      "\"device_ranges\": %llu, "
      "\"worst_round_trip_ns\": %llu}\n",
      per_record(before_jobs, after_jobs),
      static_cast<double>(plain.written_bytes) / static_cast<double>(plain.written_records),
      static_cast<unsigned long long>(end.records), static_cast<unsigned long long>(dropped),
      static_cast<unsigned long long>(host_instead), static_cast<unsigned long long>(end.device_ranges),
      static_cast<unsigned long long>(end.worst_round_trip_ns));
  return 0;
}
