// A recording with kernels is asked what a profile is asked, and answers as a profile of the same work.
#include <cmath>
#include <cstdlib>

#include "analyses/analysis.h"
#include "cupti_client.h"
#include "engine/engine.h"
#include "readers/recording/clocks.h"

using namespace stageline;

namespace {

constexpr int64_t kUs = 1000;
constexpr uint32_t kLaunch = 211, kCopyCall = 41, kDriverLaunch = 307, kNoWork = 5;

// The executed work: times from the step's first call.
struct Work {
  const char* category;
  const char* call;
  uint32_t call_id;  // 0: its launch was not seen
  const char* name;
  int64_t start_us, dur_us;
  uint32_t stream;
  int64_t bytes;
};
constexpr Work kWork[] = {
    {"kernel", "cudaLaunchKernel", kLaunch, "gemm_a", 1000, 1500, 7, -1},
    {"kernel", "cudaLaunchKernel", kLaunch, "ncclDevKernel_AllReduce_Sum", 2000, 1700, 20, -1},
    {"kernel", "cuLaunchKernel", kDriverLaunch, "triton_b", 3000, 1000, 7, -1},
    {"gpu_memcpy", "cudaMemcpyAsync", kCopyCall, "Memcpy HtoD", 4400, 800, 7, 8'000'000},
    {"kernel", "", 0, "orphan", 6000, 400, 7, -1},
};
constexpr int kSteps = 3;
constexpr int64_t kStepUs = 8000, kCallUs = 30;

struct Truth {
  int64_t began_ns[kSteps];
};
uint32_t correlation_of(int step, size_t work) {
  return static_cast<uint32_t>(1000 + step * 100 + static_cast<int>(work));
}
int64_t called_ns(const Truth& truth, int step, size_t work) {
  return truth.began_ns[step] + static_cast<int64_t>(work + 1) * 100 * kUs;
}

void run_program(InjectedLibrary& library, Cupti& cupti, Truth& truth) {
  uint16_t (*intern)(const char*, size_t) = nullptr;
  void (*push)(uint16_t, uint16_t) = nullptr;
  void (*pop)(uint16_t) = nullptr;
  library.find("slr_intern", intern);
  library.find("slr_push", push);
  library.find("slr_pop", pop);
  const uint16_t forward = intern("my forward", 10);
  for (int step = 0; step < kSteps; ++step) {
    library.step(step);
    push(0, forward);
    truth.began_ns[step] = realtime_ns();
    usleep(kStepUs);
    pop(0);
  }
  const auto thread = static_cast<uint32_t>(gettid());
  for (int step = 0; step < kSteps; ++step)
    for (size_t w = 0; w < std::size(kWork); ++w) {
      const Work& work = kWork[w];
      const int64_t call = called_ns(truth, step, w), start = truth.began_ns[step] + work.start_us * kUs;
      const bool driver = work.call_id == kDriverLaunch;
      // The driver's call within the runtime's, and calls that launch nothing.
      if (work.call_id == kLaunch)
        cupti.call(true, kDriverLaunch, correlation_of(step, w), thread, call + 5 * kUs, call + 10 * kUs);
      if (work.call_id) cupti.call(driver, work.call_id, correlation_of(step, w), thread, call, call + kCallUs * kUs);
      cupti.call(false, kNoWork, 5000 + static_cast<uint32_t>(step), thread, call, call + kUs);
      cupti.fake->correlation = correlation_of(step, w);
      if (work.bytes < 0) cupti.kernel(work.name, start, start + work.dur_us * kUs, 0, work.stream);
      else cupti.copy(1, work.bytes, start, start + work.dur_us * kUs, work.stream);
    }
}

std::string event(const std::string& category, const std::string& name, int pid, uint32_t tid, int64_t start_ns,
                  int64_t dur_ns, const std::string& args) {
  char times[96];
  std::snprintf(times, sizeof times, R"(,"ts":%lld.%03d,"dur":%lld.%03d,"args":{)",
                static_cast<long long>(start_ns / kUs), static_cast<int>(start_ns % kUs),
                static_cast<long long>(dur_ns / kUs), static_cast<int>(dur_ns % kUs));
  return R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":)" + std::to_string(pid) +
         R"(,"tid":)" + std::to_string(tid) + times + args + "}}";
}

// The same as a profiler would have written it. Host ranges are where the recording has them: their own truth is
// the recorder's tests'.
std::string as_profile(const Truth& truth, const Trace& recorded) {
  std::vector<std::string> events;
  const Part& part = recorded.parts[0];
  for (size_t i = 0; i < part.slices.size(); ++i)
    if (recorded.categories[part.slices.category_id[i]].kind == Category::kUserAnnotation)
      events.push_back(event("user_annotation", std::string(recorded.names.text(part.slices.name_id[i])), 100, 1,
                             part.slices.start_ns[i], part.slices.dur_ns[i], ""));
  for (int step = 0; step < kSteps; ++step)
    for (size_t w = 0; w < std::size(kWork); ++w) {
      const Work& work = kWork[w];
      const std::string correlation = "\"correlation\":" + std::to_string(correlation_of(step, w));
      if (work.call_id)
        events.push_back(event(work.call_id == kDriverLaunch ? "cuda_driver" : "cuda_runtime", work.call, 100, 1,
                               called_ns(truth, step, w), kCallUs * kUs, correlation));
      std::string args = correlation + ",\"device\":0,\"stream\":" + std::to_string(work.stream);
      if (work.bytes >= 0)
        args += ",\"bytes\":" + std::to_string(work.bytes) + ",\"memory bandwidth (GB/s)\":" +
                std::to_string(static_cast<double>(work.bytes) / static_cast<double>(work.dur_us * kUs));
      events.push_back(event(work.category, work.name, 0, work.stream, truth.began_ns[step] + work.start_us * kUs,
                             work.dur_us * kUs, args));
    }
  std::string text = R"({"schemaVersion":1,"deviceProperties":[],"distributedInfo":{"rank":2},"traceEvents":[)";
  for (size_t i = 0; i < events.size(); ++i) text += (i ? ",\n" : "\n") + events[i];
  return text + "]}\n";
}

Trace opened(const std::string& path) {
  Result<Trace> trace = open_trace({path}, {});
  REQUIRE_MESSAGE(trace, (trace ? "" : trace.error().text()));
  return std::move(*trace);
}

std::vector<Table> asked(const Trace& trace, const char* name, bool hta) {
  AnalysisInput input;
  input.trace = &trace;
  input.hta = hta;
  input.include_last_step = true;
  const Analysis* analysis = find_analysis(name);
  REQUIRE(analysis);
  Result<AnalysisResult> result = analysis->run(input);
  REQUIRE_MESSAGE(result, std::string(name) << (result ? "" : result.error().text()));
  return std::move(result->tables);
}

// Numbers may differ by what the clocks' conversion costs; texts may not.
bool same_value(const std::string& a, const std::string& b) {
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  if (end_a == a.c_str() || *end_a || end_b == b.c_str() || *end_b) return a == b;
  return std::abs(x - y) <= std::max(5.0, 0.01 * std::max(std::abs(x), std::abs(y)));
}

struct Pair {
  Trace recorded, profile;
};
Pair record_and_profile(const RecordFolder& folder, const char* launches = "1") {
  Shared<Truth> truth;
  CHECK(with_kernels(folder, [&](InjectedLibrary& library, Cupti& cupti) {
          setenv("STAGELINE_LAUNCHES", launches, 1);
          slr_config c = folder.config(2);
          if (library.init(&c) != 0 || inject(library) != 1) return 1;
          if (!wait_for([&] { return cupti.fake->enables >= (*launches == '0' ? 3 : 5); })) return 2;
          run_program(library, cupti, *truth);
          return 0;
        }) == 0);
  Trace recorded = opened(folder.path());
  const std::string path = folder.path() + "/profile.json";
  std::ofstream(path) << as_profile(*truth, recorded);
  return {std::move(recorded), opened(path)};
}

}  // namespace

TEST_CASE("a recording with kernels answers as a profile of the same work") {
  const RecordFolder folder;
  const auto [recorded, profile] = record_and_profile(folder);
  int64_t compared = 0;
  for (const char* name : {"gpu-kernel-breakdown", "temporal-breakdown", "comm-comp-overlap", "idle-time-breakdown",
                           "cuda-kernel-launch-stats", "queue-length-summary", "memory-bw-summary"})
    for (const bool hta : {false, true}) {
      const std::string compat = find_analysis(name)->compat;
      if (hta && compat.find("hta") == std::string::npos) continue;
      CAPTURE(name);
      CAPTURE(hta);
      const std::vector<Table> ours = asked(recorded, name, hta), theirs = asked(profile, name, hta);
      REQUIRE(ours.size() == theirs.size());
      for (size_t t = 0; t < ours.size(); ++t) {
        CAPTURE(ours[t].name());
        REQUIRE(ours[t].row_count() == theirs[t].row_count());
        for (size_t row = 0; row < ours[t].row_count(); ++row)
          for (size_t column = 0; column < ours[t].columns().size(); ++column) {
            const std::string a = ours[t].raw_text(row, column), b = theirs[t].raw_text(row, column);
            CAPTURE(row);
            CAPTURE(column);
            CAPTURE(a);
            CAPTURE(b);
            CHECK(same_value(a, b));
            ++compared;
          }
      }
    }
  CHECK(compared > 100);
}

TEST_CASE("each kernel has its class, its stream, its step and the call that launched it") {
  const RecordFolder folder;
  const Trace trace = record_and_profile(folder).recorded;
  REQUIRE(trace.parts.size() == 1);
  const Part& part = trace.parts[0];
  const Slices& s = part.slices;
  int64_t found = 0, launches = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    const std::string name(trace.names.text(s.name_id[i]));
    launches += is_launch_call(trace.categories[s.category_id[i]].kind);
    for (size_t w = 0; w < std::size(kWork); ++w) {
      const Work& work = kWork[w];
      if (name != work.name) continue;
      CAPTURE(name);
      ++found;
      CHECK(trace.categories[s.category_id[i]].text == work.category);
      CHECK(part.streams[s.stream_id[i]] == work.stream);
      CHECK(s.class_of(i) == (work.bytes >= 0     ? KernelClass::kMemory
                              : work.stream == 20 ? KernelClass::kCommunication
                                                  : KernelClass::kComputation));
      const int32_t step = static_cast<int32_t>(s.correlation[i] - 1000) / 100;
      REQUIRE(s.step[i] > 0);
      CHECK(part.steps[s.step[i] - 1u].number == step);
      REQUIRE((s.partner[i] == kNoSliceIndex) == (work.call_id == 0));
      if (work.call_id == 0) continue;
      const uint32_t launch = s.partner[i];
      CHECK(trace.names.text(s.name_id[launch]) == work.call);
      CHECK(s.partner[launch] == i);
      REQUIRE(s.parent[launch] != kNoSliceIndex);  // the range it was called in
      CHECK(trace.names.text(s.name_id[s.parent[launch]]) == "my forward");
    }
  }
  CHECK(found == kSteps * static_cast<int64_t>(std::size(kWork)));
  CHECK(launches == kSteps * 4);  // calls that launch nothing are not kept
  REQUIRE(part.copies.size() == kSteps);
  CHECK(part.copies[0].bytes == 8'000'000);
  CHECK(part.copies[0].bandwidth_gbps == doctest::Approx(10).epsilon(0.01));
}

TEST_CASE("without launches kernels have no partner, and the host's step") {
  const RecordFolder folder;
  const Trace trace = record_and_profile(folder, "0").recorded;
  const Slices& s = trace.parts[0].slices;
  int64_t kernels = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    CHECK_FALSE(is_launch_call(trace.categories[s.category_id[i]].kind));
    if (!is_device_work(trace.categories[s.category_id[i]].kind)) continue;
    ++kernels;
    CHECK(s.partner[i] == kNoSliceIndex);
    CHECK(s.step[i] > 0);
  }
  CHECK(kernels == kSteps * static_cast<int64_t>(std::size(kWork)));
}
