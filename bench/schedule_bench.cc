// Measures recognition, replay and lateness of a simulated run, cells in memory: no files, no reader.
//
//   stageline_schedule_bench SCHEDULE STAGES REPLICAS MICRO_BATCHES STEPS [LOST]
//
// It skips LOST cells in a thousand, so that almost no two lists are equal. That is the worst case of recognition. It
// prints cells, the schedule and late cells, and the seconds of recognise(), of theory_of() (which recognises again)
// and of late_cells(). The seconds of waterfall_of() follow, and those of find_findings(), which repeats all but late
// cells, the share of the rest, and the processor time of the findings without and with offers.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "diagnosis/explain.h"
#include "pipeline/cells/link_cells.h"
#include "pipeline/measure/late_cells.h"
#include "pipeline/measure/waterfall.h"
#include "pipeline/simulate/simulate.h"
#include "schedules/registry.h"

using namespace stageline;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns the processor time of all threads so far, which a busy machine does not lengthen.
double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 7) {
    std::fprintf(stderr, "stageline_schedule_bench SCHEDULE STAGES REPLICAS MICRO_BATCHES STEPS\n");
    return 2;
  }
  SimulateOptions options;
  ScheduleSizes sizes{.stages = std::atoi(argv[2]), .micro_batches = std::atoi(argv[4])};
  for (const ScheduleDef* def : schedules())
    if (def->name == std::string(argv[1])) sizes.chunks = def->default_chunks;
  Result<Schedule> schedule = make_schedule(argv[1], sizes);
  if (!schedule) {
    std::fprintf(stderr, "%s\n", schedule.error().text().c_str());
    return 2;
  }
  options.schedule = std::move(*schedule);
  options.dp = std::atoi(argv[3]);
  options.steps = std::atoi(argv[5]);
  options.jitter = 0.03;
  options.costs.latency_ns = 200'000;
  Result<SimulatedRun> run = simulate_run(options);
  if (!run) {
    std::fprintf(stderr, "%s\n", run.error().text().c_str());
    return 2;
  }
  Trace& trace = run->trace;
  trace.cells.sort();
  if (const uint64_t lost = argc == 7 ? std::strtoull(argv[6], nullptr, 10) : 0; lost > 0)
    trace.cells.filter([&](size_t i) { return ((i + 1) * 0x9e3779b97f4a7c15ULL >> 40) % 1000 >= lost; });
  link_cells(trace);  // as whoever opens a run does
  double recognised = 0, replayed = 0, judged = 0, split = 0, rest = 0;
  std::string schedule_name;
  int64_t late_cells_found = 0;
  auto start = std::chrono::steady_clock::now();
  (void)recognise(trace);
  recognised = seconds_since(start);
  {  // gone before explain() makes its own
    start = std::chrono::steady_clock::now();
    const PipelineSums sums = pipeline_sums(trace);
    const TheoryRun theory = theory_of(trace, sums);
    replayed = seconds_since(start);
    schedule_name = theory.theory.schedule;
    start = std::chrono::steady_clock::now();
    late_cells_found = late_cells(trace, theory, 1'000'000).found;
    judged = seconds_since(start);
    start = std::chrono::steady_clock::now();
    const WaterfallStep mean = mean_of(waterfall_of(trace, theory, sums));
    split = seconds_since(start);
    rest = mean.part_ns[WaterfallPart::kRest] / mean.pipeline_ns;
  }
  start = std::chrono::steady_clock::now();
  double before = processor_seconds();
  const size_t said = explain(Run(trace)).findings.size();  // recognises, replays and splits again
  const double found = seconds_since(start), found_busy = processor_seconds() - before;
  start = std::chrono::steady_clock::now();
  before = processor_seconds();
  (void)explain(Run(trace), true);
  const double offered = seconds_since(start), offered_busy = processor_seconds() - before;
  std::printf("%zu\t%.3f\t%.3f\t%.3f\t%s\t%lld\t%.3f\t%.3f\t%zu\t%.3f\t%.9f\t%.3f\t%.3f\n", trace.cells.size(),
              recognised, replayed, judged, schedule_name.c_str(), static_cast<long long>(late_cells_found), split,
              found, said, offered, rest, found_busy, offered_busy);
  return 0;
}
