// Ranges on a device that is not there (fake_gpu.h), and how far their recorded times are from the true ones.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cmath>

#include "fake_gpu.h"
#include "readers/recording/clocks.h"
#include "record_fixture.h"

using recording::RecordType;

constexpr int kMaxRanges = 4096;
struct Truth {
  int64_t start_ns[kMaxRanges], end_ns[kMaxRanges];  // CLOCK_MONOTONIC_RAW
  int count;
  slr_statistics stats;
  int64_t records, creates, after_loss;
};

// The fake driver, loaded by path; the recorder finds it by its name.
struct Driver {
  void* library;
  FakeGpu* gpu;
  FakeKernelFunction kernel;
  FakeLastFunction last;
  FakeStreamFunction stream;

  explicit Driver(const char* file = "libcuda.so.1")
      : library(dlopen((std::string(STAGELINE_FAKE_FOLDER "/") + file).c_str(), RTLD_NOW)) {
    if (!library) _exit(99);
    gpu = reinterpret_cast<FakeGpuFunction>(dlsym(library, "fake_gpu"))();
    kernel = reinterpret_cast<FakeKernelFunction>(dlsym(library, "fake_kernel"));
    last = reinterpret_cast<FakeLastFunction>(dlsym(library, "fake_last"));
    stream = reinterpret_cast<FakeStreamFunction>(dlsym(library, "fake_stream"));
  }
};

// Runs one range with a kernel in it, and returns its truth.
inline void run_job(const Driver& driver, slr_lane lane, void* stream, int number, int64_t kernel_ns, Truth& truth) {
  slr_job job = SLR_JOB(SLR_FORWARD, number, 0);
  const slr_range range = slr_begin(lane, &job);
  truth.start_ns[number] = driver.last(stream);
  driver.kernel(stream, kernel_ns);
  slr_end(range);
  truth.end_ns[number] = driver.last(stream);
  truth.count = number + 1;
}

inline void finish(const Driver& driver, Truth& truth) {
  slr_flush(5000);
  truth.stats = stats_now();
  truth.records = driver.gpu->records;
  truth.creates = driver.gpu->creates;
}

// Distances between recorded and true times, in order of size, where true times are put on the recording's axis.
inline std::vector<int64_t> errors_ns(const recording::Recording& r, Truth& truth, int64_t* bound_ns) {
  const recording::Clocks clocks(r.content.snapshots, r.content.anchors, r.meta.ticks_per_second,
                                 r.meta.start_realtime_ns);
  std::vector<recording::Line::Point> raw;
  for (const auto& s : r.content.snapshots) raw.push_back({s.raw_ns, clocks.host_ns(s.ticks)});
  const recording::Line axis(raw, 1);
  std::vector<int64_t> errors;
  for (const auto& row : r.content.rows) {
    if (row.type != RecordType::kRange || !row.device_times) continue;
    const uint8_t clock = r.content.lanes.at(row.lane).clock;
    const auto k = static_cast<size_t>(row.micro_batch);
    errors.push_back(std::abs(clocks.device_ns(clock, row.start) - axis.at(truth.start_ns[k])));
    errors.push_back(std::abs(clocks.device_ns(clock, row.end) - axis.at(truth.end_ns[k])));
  }
  // Anchors are right to half their round trip; beyond the last one the line through two of them can be off five times
  // that much. Float milliseconds, ticks and the snapshots' own brackets come on top.
  *bound_ns = 5 * clocks.worst_bracket_ns + 2000;
  for (const auto& s : r.content.snapshots)
    *bound_ns +=
        static_cast<int64_t>(static_cast<double>(s.bracket_ticks) * 1e9 / static_cast<double>(r.meta.ticks_per_second));
  std::sort(errors.begin(), errors.end());
  return errors;
}
inline int64_t worst_error_ns(const recording::Recording& r, Truth& truth, int64_t* bound_ns) {
  const std::vector<int64_t> errors = errors_ns(r, truth, bound_ns);
  return errors.empty() ? 0 : errors.back();
}

inline int64_t device_rows(const recording::Recording& r) {
  return std::count_if(r.content.rows.begin(), r.content.rows.end(), [](const auto& row) { return row.device_times; });
}
inline int64_t host_instead_rows(const recording::Recording& r) {
  return std::count_if(r.content.rows.begin(), r.content.rows.end(), [](const auto& row) { return row.host_instead; });
}
