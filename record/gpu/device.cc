// The parts that need no framework: device PART [NUMBER …] records with the library and measures times with its own
// kernel. The kernel stores the device's %globaltimer when it starts and ends. CUDA's driver is opened at run time, so
// this builds without CUDA. It prints one line of JSON per measured number, {"part", "what", "value", "unit", "at_most"
// or "at_least"}; parts.py checks the value.
#include <dlfcn.h>
#include <signal.h>
#include <stageline_record.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

[[noreturn]] void give_up(const char* what, int error = 0) {
  fprintf(stderr, "device: %s", what);
  if (error) fprintf(stderr, " (CUDA says %d)", error);
  fprintf(stderr, "\n");
  _exit(3);
}

// Waits for the time that `ns` says and stores when it began and ended.
constexpr char kSpin[] =
    ".version 6.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry spin(.param .u64 out, .param .u64 ns)\n{\n"
    "  .reg .u64 %rd<6>;\n  .reg .pred %p1;\n"
    "  ld.param.u64 %rd1, [out];\n  ld.param.u64 %rd2, [ns];\n"
    "  mov.u64 %rd3, %globaltimer;\n  add.u64 %rd4, %rd3, %rd2;\n"
    "WAIT:\n  mov.u64 %rd5, %globaltimer;\n  setp.lt.u64 %p1, %rd5, %rd4;\n  @%p1 bra WAIT;\n"
    "  st.global.u64 [%rd1], %rd3;\n  st.global.u64 [%rd1+8], %rd5;\n  ret;\n}\n";

class Driver {
 public:
  Driver() {
    library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library_) give_up("there is no CUDA driver on this machine (libcuda.so.1)");
    int (*init)(unsigned) = nullptr;
    int (*retain)(void**, int) = nullptr;
    int (*make_current)(void*) = nullptr;
    find("cuInit", init), find("cuDevicePrimaryCtxRetain", retain), find("cuCtxSetCurrent", make_current);
    find("cuStreamCreate", make_stream_), find("cuMemHostAlloc", make_memory_), find("cuStreamSynchronize", wait_);
    find("cuModuleLoadData", load_), find("cuModuleGetFunction", function_of_), find("cuLaunchKernel", launch_);
    find("cuStreamBeginCapture_v2", begin_capture_), find("cuStreamEndCapture", end_capture_);
    find("cuGraphInstantiateWithFlags", instantiate_), find("cuGraphLaunch", launch_graph_),
        find("cuGraphDestroy", forget_);
    find("cuEventCreate", make_event), find("cuEventRecord", record_event), find("cuStreamIsCapturing", is_capturing);
    find("cuDevicePrimaryCtxReset_v2", reset);
    void* context = nullptr;
    check(init(0), "cuInit");
    check(retain(&context, 0), "a device");
    check(make_current(context), "its context");
  }
  void* stream() {
    void* made = nullptr;
    check(make_stream_(&made, 1), "a stream");
    return made;
  }
  // Pairs of stamps that both sides see.
  uint64_t* memory(size_t pairs) {
    void* made = nullptr;
    check(make_memory_(&made, pairs * 16, 2), "memory");
    memset(made, 0, pairs * 16);
    return static_cast<uint64_t*>(made);
  }
  void spin(void* stream, uint64_t* out, int64_t ns) {
    if (!kernel_) {
      void* module = nullptr;
      check(load_(&module, kSpin), "its kernel");
      check(function_of_(&kernel_, module, "spin"), "its kernel");
    }
    uint64_t span = static_cast<uint64_t>(ns);
    void* arguments[] = {&out, &span};
    check(launch_(kernel_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), "a launch");
  }
  void wait(void* stream) { check(wait_(stream), "waiting"); }
  int begin_capture(void* stream) { return begin_capture_(stream, 0); }  // 0: global, what others must not disturb
  int end_capture(void* stream, void** graph) { return end_capture_(stream, graph); }
  void* executable(void* graph) {
    void* made = nullptr;
    check(instantiate_(&made, graph, 0), "a graph");
    return made;
  }
  void launch(void* executable, void* stream) { check(launch_graph_(executable, stream), "a replay"); }
  void forget(void* graph) { forget_(graph); }
  void check(int error, const char* what) {
    if (error) give_up((std::string(what) + " is refused").c_str(), error);
  }

  int (*make_event)(void**, unsigned) = nullptr;
  int (*record_event)(void*, void*) = nullptr;
  int (*is_capturing)(void*, int*) = nullptr;
  int (*reset)(int) = nullptr;

 private:
  template <class Function> void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (!function) give_up((std::string("the driver has no ") + name).c_str());
  }
  void* library_;
  void* kernel_ = nullptr;
  int (*make_stream_)(void**, unsigned) = nullptr;
  int (*make_memory_)(void**, size_t, unsigned) = nullptr;
  int (*wait_)(void*) = nullptr;
  int (*load_)(void**, const void*) = nullptr;
  int (*function_of_)(void**, void*, const char*) = nullptr;
  int (*launch_)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                 void**) = nullptr;
  int (*begin_capture_)(void*, int) = nullptr;
  int (*end_capture_)(void*, void**) = nullptr;
  int (*instantiate_)(void**, void*, unsigned long long) = nullptr;
  int (*launch_graph_)(void*, void*) = nullptr;
  int (*forget_)(void*) = nullptr;
};

void measured(int part, const char* what, double value, const char* unit, const char* bound = nullptr,
              double limit = 0) {
  printf("{\"part\": %d, \"what\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"", part, what, value, unit);
  if (bound) printf(", \"%s\": %.6g", bound, limit);
  printf("}\n");
  fflush(stdout);
}

double median(std::vector<double> values) {
  if (values.empty()) give_up("nothing was measured");
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void begin_recording() {
  slr_config config = SLR_CONFIG_INIT;
  config.max_overhead = -1;  // what it costs is to be seen, not kept small
  if (slr_init(&config) != 0) give_up("the recording could not begin");
}

slr_statistics statistics() {
  slr_statistics out = {};
  out.size = sizeof out;
  slr_stats(&out);
  return out;
}

int64_t lost(const slr_statistics& s) {
  int64_t sum = 0;
  for (int i = SLR_DROP_RING_FULL; i <= SLR_DROP_BAD_HANDLE; ++i) sum += static_cast<int64_t>(s.drops[i]);
  return sum;
}

// Calls of `body` in bursts, with pauses in which the device and the writer follow: ns a call, of each burst.
template <class Body> double call_ns(int bursts, int calls, Body body, void* stream, Driver& driver) {
  std::vector<double> out;
  for (int b = 0; b < bursts; ++b) {
    const int64_t begin = now_ns();
    for (int i = 0; i < calls; ++i) body(i);
    out.push_back(static_cast<double>(now_ns() - begin) / calls);
    driver.wait(stream);
    usleep(20'000);
  }
  return median(std::move(out));
}

// 2: what a range costs the thread that asks for it.
void cost(Driver& driver, int bursts) {
  begin_recording();
  void* stream = driver.stream();
  uint64_t* stamps = driver.memory(1);
  const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
  const slr_job job = SLR_JOB(SLR_FORWARD, 0, 0);
  slr_end(slr_begin(lane, &job));
  constexpr int kCalls = 500;  // events in flight are bounded
  const auto range = [&](int) { slr_end(slr_begin(lane, &job)); };
  measured(2, "host time of a range, stream idle", call_ns(bursts, kCalls, range, stream, driver), "ns", "at_most",
           3000);
  driver.spin(stream, stamps, 20'000'000);
  measured(2, "host time of a range, stream full", call_ns(1, kCalls, range, stream, driver), "ns", "at_most", 3000);
  slr_range open = slr_begin(lane, &job);
  measured(2, "host time of a switch",
           call_ns(
               bursts, kCalls, [&](int) { open = slr_switch(lane, open, &job); }, stream, driver),
           "ns", "at_most", 2000);
  slr_end(open);
  void* event = nullptr;
  driver.check(driver.make_event(&event, 0), "an event");
  int status = 0;
  measured(2, "cuEventRecord alone",
           call_ns(bursts, kCalls, [&](int) { driver.record_event(event, stream); }, stream, driver), "ns");
  measured(2, "cuStreamIsCapturing alone",
           call_ns(bursts, kCalls, [&](int) { driver.is_capturing(stream, &status); }, stream, driver), "ns");
  slr_flush(5000);
  measured(2, "records lost", static_cast<double>(lost(statistics())), "", "at_most", 0);
}

// 3: what an event between two kernels adds to the gap between them.
void gap(Driver& driver, int pairs) {
  begin_recording();
  void* stream = driver.stream();
  const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
  const slr_job job = SLR_JOB(SLR_FORWARD, 0, 0);
  uint64_t* stamps = driver.memory(4);
  slr_end(slr_begin(lane, &job));
  const auto gap_of = [&](int how) {
    // The stream is held up first, so that the host's own pace is in no gap.
    driver.spin(stream, stamps, 100'000);
    driver.spin(stream, stamps + 2, 20'000);
    slr_range range = 0;
    if (how == 1) range = slr_begin(lane, &job);
    if (how == 1) slr_end(range);
    driver.spin(stream, stamps + 4, 20'000);
    driver.wait(stream);
    return static_cast<double>(stamps[4]) - static_cast<double>(stamps[3]);
  };
  std::vector<double> without, with;
  for (int i = 0; i < pairs; ++i) (i % 2 ? with : without).push_back(gap_of(i % 2));
  measured(3, "gap between two kernels, nothing between", median(without), "ns");
  std::vector<double> sorted = with;
  std::sort(sorted.begin(), sorted.end());
  measured(3, "gap with a range between, 99th percentile", sorted[sorted.size() * 99 / 100], "ns");
  measured(3, "gap that a range adds", median(with) - median(without), "ns", "at_most", 3000);
}

// Part 5 compares the device's clock with the host's. Timestamps go to the named file, which parts.py compares.
void clocks(Driver& driver, int seconds, bool load, const char* path) {
  begin_recording();
  void *stream = driver.stream(), *other = driver.stream();
  const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
  const int count = seconds * 20;
  uint64_t *stamps = driver.memory(static_cast<size_t>(count)), *ignored = driver.memory(1);
  for (int i = 0; i < count; ++i) {
    if (load) driver.spin(other, ignored, 40'000'000);
    const slr_job job = SLR_JOB(SLR_FORWARD, i, 0);
    const slr_range range = slr_begin(lane, &job);
    driver.spin(stream, stamps + 2 * i, 100'000);
    slr_end(range);
    usleep(50'000);
  }
  driver.wait(stream);
  slr_flush(5000);
  const slr_statistics s = statistics();
  FILE* file = fopen(path, "w");
  if (!file) give_up("the stamps cannot be written");
  for (int i = 0; i < count; ++i)
    fprintf(file, "%d %llu %llu\n", i, static_cast<unsigned long long>(stamps[2 * i]),
            static_cast<unsigned long long>(stamps[2 * i + 1]));
  fclose(file);
  const std::string how = load ? ", another stream busy" : ", idle";
  measured(5, ("anchors a second" + how).c_str(), static_cast<double>(s.anchors) / seconds, "1/s", "at_least", 0.5);
  measured(5, ("anchors refused" + how).c_str(), static_cast<double>(s.anchors_refused), "");
  measured(5, ("longest round trip of an anchor" + how).c_str(), static_cast<double>(s.worst_round_trip_ns), "ns");
}

double overlap_of(const uint64_t* a, const uint64_t* b, int count) {
  double both = 0, all = 0;
  for (int i = 0; i < count; ++i) {
    all += static_cast<double>(a[2 * i + 1] - a[2 * i]);
    for (int k = 0; k < count; ++k) {
      const uint64_t from = std::max(a[2 * i], b[2 * k]), to = std::min(a[2 * i + 1], b[2 * k + 1]);
      if (to > from) both += static_cast<double>(to - from);
    }
  }
  return all > 0 ? both / all : 0;
}

// 6: two streams that overlap still do. With one hardware queue only the first stream gets events.
void overlap(Driver& driver, int rounds) {
  begin_recording();
  void *compute = driver.stream(), *copies = driver.stream();
  const slr_lane lanes[] = {slr_lane_stream(SLR_CUDA, compute, "compute"), slr_lane_stream(SLR_CUDA, copies, "copy")};
  constexpr int kKernels = 50;
  uint64_t *a = driver.memory(kKernels), *b = driver.memory(kKernels);
  const slr_job job = SLR_JOB(SLR_FORWARD, 0, 0);
  std::vector<double> shares[2];
  for (int round = 0; round < 2 * rounds; ++round) {
    const bool records = round % 2 == 1;
    for (int i = 0; i < kKernels; ++i) {
      const slr_range first = records ? slr_begin(lanes[0], &job) : 0, second = records ? slr_begin(lanes[1], &job) : 0;
      driver.spin(compute, a + 2 * i, 200'000);
      driver.spin(copies, b + 2 * i, 200'000);
      if (records) slr_end(first), slr_end(second);
    }
    driver.wait(compute);
    driver.wait(copies);
    shares[records].push_back(overlap_of(a, b, kKernels));
  }
  slr_flush(5000);
  const char* queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const bool one = queues && strcmp(queues, "1") == 0;
  const slr_statistics s = statistics();
  if (one) {
    measured(6, "one queue: ranges of the second stream left to the host's times",
             static_cast<double>(s.drops[SLR_DROP_ONE_QUEUE]), "", "at_least", 1);
    return;
  }
  measured(6, "share of a stream's work that overlaps the other's", median(shares[0]) * 100, "%");
  measured(6, "change of that by ranges on both", (median(shares[1]) - median(shares[0])) * 100, "points", "at_least",
           -1);
}

// Part 7 records ranges in captured graphs.
void graphs(Driver& driver, int replays, int every_us) {
  begin_recording();
  void* stream = driver.stream();
  const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
  uint64_t* stamps = driver.memory(2);
  slr_job job = SLR_JOB(SLR_FORWARD, 0, 0);
  slr_end(slr_begin(lane, &job));
  driver.spin(stream, stamps, 1000);  // its module is loaded outside of the capture
  driver.wait(stream);
  slr_flush(2000);
  const uint64_t before = statistics().device_ranges;
  int failures = driver.begin_capture(stream) != 0;
  const slr_range range = slr_begin(lane, &job);
  driver.spin(stream, stamps, 300'000);
  slr_end(range);
  void* graph = nullptr;
  failures += driver.end_capture(stream, &graph) != 0 || !graph;
  const char* asked = getenv("STAGELINE_GRAPHS");
  const bool nodes = asked && strcmp(asked, "1") == 0;
  const std::string how = nodes ? (every_us < 5000 ? ", replays 2 ms apart" : ", replays 20 ms apart") : ", by default";
  measured(7, ("failed captures" + how).c_str(), failures, "", "at_most", 0);
  if (failures) return;
  void* executable = driver.executable(graph);
  slr_flush(2000);  // a captured range is looked at from then on
  double worst = 0;
  for (int i = 0; i < replays; ++i) {
    slr_step(i);
    const int64_t begin = now_ns();
    driver.launch(executable, stream);
    driver.wait(stream);
    worst = std::max(worst, std::abs(static_cast<double>(stamps[1] - stamps[0]) - 300'000));
    if (const int64_t left = every_us - (now_ns() - begin) / 1000; left > 0) usleep(static_cast<useconds_t>(left));
  }
  usleep(50'000);
  slr_flush(5000);
  const slr_statistics s = statistics();
  measured(7, ("replays that ran otherwise than captured, by 50 us" + how).c_str(), worst > 50'000, "", "at_most", 0);
  measured(7, ("ranges counted as captured" + how).c_str(), static_cast<double>(s.drops[SLR_DROP_CAPTURE]), "",
           "at_least", 1);
  // Replays are not counted with the ranges: parts.py counts them in the file.
  if (!nodes)
    measured(7, "device times of captured ranges, by default", static_cast<double>(s.device_ranges - before), "",
             "at_most", 0);
}

// Part 8 makes a capture that must not be disturbed, while the recorder's thread polls events.
void captures(Driver& driver, int count) {
  begin_recording();
  void *stream = driver.stream(), *captured = driver.stream();
  const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
  uint64_t* stamps = driver.memory(2);
  const slr_job job = SLR_JOB(SLR_FORWARD, 0, 0);
  driver.spin(captured, stamps, 1000);
  driver.wait(captured);
  int failures = 0;
  for (int i = 0; i < count; ++i) {
    const slr_range range = slr_begin(lane, &job);  // outside of the capture: something to ask for
    driver.spin(stream, stamps, 2'000'000);
    slr_end(range);
    void* graph = nullptr;
    failures += driver.begin_capture(captured) != 0;
    driver.spin(captured, stamps + 2, 1000);
    usleep(500);
    failures += driver.end_capture(captured, &graph) != 0 || !graph;
    if (graph) driver.forget(graph);
    if (i % 16 == 15) driver.wait(stream);
  }
  driver.wait(stream);
  slr_flush(5000);
  measured(8, "captures", count, "");
  measured(8, "captures that failed", failures, "", "at_most", 0);
  measured(8, "ranges with the device's times meanwhile", static_cast<double>(statistics().device_ranges), "",
           "at_least", count * 0.9);
}

// Part 13 records until it is killed. The number of ended ranges is in a file that outlives it.
void endless(Driver& driver, const char* path) {
  FILE* file = fopen(path, "w+");
  if (!file || ftruncate(fileno(file), 8) != 0) give_up("the count cannot be written");
  auto* ended = static_cast<int64_t*>(mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0));
  if (ended == MAP_FAILED) give_up("the count cannot be written");
  begin_recording();
  void* stream = driver.stream();
  const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
  uint64_t* stamps = driver.memory(1);
  for (int64_t i = 0;; ++i) {
    const slr_job job = SLR_JOB(SLR_FORWARD, static_cast<int32_t>(i), 0);
    const slr_range range = slr_begin(lane, &job);
    driver.spin(stream, stamps, 100'000);
    slr_end(range);
    __atomic_store_n(ended, i + 1, __ATOMIC_RELEASE);
    usleep(200);
  }
}

// 14: the ways a process ends.
int leave(Driver& driver, const char* how) {
  begin_recording();
  void* stream = driver.stream();
  const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
  uint64_t* stamps = driver.memory(1);
  for (int i = 0; i < 100; ++i) {
    const slr_job job = SLR_JOB(SLR_FORWARD, i, 0);
    const slr_range range = slr_begin(lane, &job);
    driver.spin(stream, stamps, 100'000);
    slr_end(range);
  }
  if (strcmp(how, "_exit") == 0) _exit(0);
  if (strcmp(how, "reset") == 0) driver.reset(0);
  if (strcmp(how, "fork") == 0) {  // as a DataLoader's worker: it uses no device and records nothing
    const pid_t child = fork();
    if (child == 0) {
      const slr_job job = SLR_JOB(SLR_LOAD, 0, 0);
      for (int i = 0; i < 1000; ++i) slr_end(slr_begin(0, &job));
      exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status != 0;
  }
  return 0;
}

int64_t resident_kb() {
  int64_t pages = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &pages, &resident) != 2) give_up("/proc/self/statm cannot be read");
  fclose(file);
  return resident * sysconf(_SC_PAGESIZE) / 1024;
}

// 15: a long time at 2 000 ranges a second.
void soak(Driver& driver, int seconds) {
  begin_recording();
  void* stream = driver.stream();
  const slr_lane lane = slr_lane_stream(SLR_CUDA, stream, "compute");
  uint64_t* stamps = driver.memory(1);
  const int64_t begin = now_ns(), warm = begin + static_cast<int64_t>(seconds) * 300'000'000;
  int64_t first_kb = 0, ranges = 0;
  while (now_ns() - begin < static_cast<int64_t>(seconds) * 1'000'000'000) {
    slr_step(ranges / 2000);
    for (int i = 0; i < 20; ++i, ++ranges) {
      const slr_job job = SLR_JOB(i % 2 ? SLR_BACKWARD : SLR_FORWARD, i / 2, 0);
      const slr_range range = slr_begin(lane, &job);
      driver.spin(stream, stamps, 50'000);
      slr_end(range);
    }
    const int64_t due = begin + ranges * 500'000;
    if (const int64_t left = (due - now_ns()) / 1000; left > 0) usleep(static_cast<useconds_t>(left));
    if (!first_kb && now_ns() > warm) first_kb = resident_kb();
  }
  driver.wait(stream);
  slr_flush(5000);
  const slr_statistics s = statistics();
  const double hours = static_cast<double>(now_ns() - begin) / 3.6e12;
  measured(15, "ranges", static_cast<double>(ranges), "");
  measured(15, "records lost", static_cast<double>(lost(s)), "", "at_most", 0);
  measured(15, "ranges without the device's times", static_cast<double>(ranges) - static_cast<double>(s.device_ranges),
           "", "at_most", static_cast<double>(ranges) * 0.001);
  measured(15, "memory that it grew by after a third of the time", static_cast<double>(resident_kb() - first_kb), "KB",
           "at_most", 1024);
  measured(15, "written", static_cast<double>(s.written_bytes) / 1e6 / hours, "MB/h");
}

}  // namespace

int main(int count, char** arguments) {
  const std::string part = count > 1 ? arguments[1] : "";
  const auto number = [&](int at, int fallback) { return count > at ? atoi(arguments[at]) : fallback; };
  const auto text = [&](int at) { return count > at ? arguments[at] : ""; };
  Driver driver;
  if (part == "there") return 0;
  if (part == "cost") return cost(driver, number(2, 200)), 0;
  if (part == "gap") return gap(driver, number(2, 10'000)), 0;
  if (part == "clocks") return clocks(driver, number(2, 600), number(3, 0) != 0, text(4)), 0;
  if (part == "overlap") return overlap(driver, number(2, 20)), 0;
  if (part == "graphs") return graphs(driver, number(2, 100), number(3, 20'000)), 0;
  if (part == "captures") return captures(driver, number(2, 1000)), 0;
  if (part == "endless") return endless(driver, text(2)), 0;
  if (part == "leave") return leave(driver, text(2));
  if (part == "soak") return soak(driver, number(2, 1200)), 0;
  fprintf(stderr, "usage: device there|cost|gap|clocks|overlap|graphs|captures|endless|leave|soak [NUMBER …]\n");
  return 2;
}
