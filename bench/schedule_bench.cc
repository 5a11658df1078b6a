// Recognition, replay and lateness of a simulated run, cells in memory: no files, no reader.
//   stageline_schedule_bench SCHEDULE STAGES REPLICAS MICRO_BATCHES STEPS [LOST]
// LOST cells in a thousand are left out, so that hardly any two lists are equal: the worst case of recognition.
// Prints cells, and seconds of recognise(), theory_of() (which recognises again) and late_cells(); the schedule and
// late cells; seconds of waterfall_of() and of find_findings(), which does all of it again but late cells; the rest's
// share.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "engine/explain.h"
#include "pipeline/late_cells.h"
#include "pipeline/simulate.h"
#include "pipeline/waterfall.h"
#include "schedules/make.h"

using namespace stageline;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
  auto start = std::chrono::steady_clock::now();
  const Recognition recognition = recognise(trace);
  const double recognised = seconds_since(start);
  start = std::chrono::steady_clock::now();
  const TheoryRun theory = theory_of(trace);
  const double replayed = seconds_since(start);
  start = std::chrono::steady_clock::now();
  const LateCells late = late_cells(trace, theory, 1'000'000);
  const double judged = seconds_since(start);
  start = std::chrono::steady_clock::now();
  const Waterfall waterfall = waterfall_of(trace, theory, pipeline_sums(trace));
  const double split = seconds_since(start);
  const WaterfallStep mean = mean_of(waterfall);
  const double rest = mean.part_ns[static_cast<size_t>(WaterfallPart::kRest)] / mean.pipeline_ns;
  start = std::chrono::steady_clock::now();
  const Explanation said = explain(trace, {}, false);  // recognises, replays and splits again
  const double found = seconds_since(start);
  start = std::chrono::steady_clock::now();
  (void)explain(trace, {}, true);
  const double offered = seconds_since(start);
  std::printf("%zu\t%.3f\t%.3f\t%.3f\t%s\t%lld\t%.3f\t%.3f\t%zu\t%.3f\t%.9f\n", trace.cells.size(), recognised, replayed, judged,
              theory.theory.schedule.c_str(), static_cast<long long>(late.found), split, found, said.findings.size(), offered, rest);
  return 0;
}
