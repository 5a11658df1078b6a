// The step graph of a recorded job and all worlds of `analyze slowdown`, after load.
//   stageline_slowdown_bench PATH [RUNS]
// Prints operations, worlds, and the least seconds of build_step_graph() and slowdown() over RUNS (default 5); S; the
// least seconds of recognise() and the model of what-if, and of all its fixes; CPU seconds of slowdown() and of the
// fixes, the least too; how many fixes were tried.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "engine/engine.h"
#include "pipeline/slowdown.h"
#include "pipeline/what_if_fixes.h"

using namespace stageline;

namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "stageline_slowdown_bench PATH [RUNS]\n");
    return 2;
  }
  const Result<Trace> trace = open_trace({argv[1]}, {});
  if (!trace) {
    std::fprintf(stderr, "%s\n", trace.error().text().c_str());
    return 2;
  }
  const int runs = argc == 3 ? std::max(1, std::atoi(argv[2])) : 5;
  double built = 1e9, judged = 1e9, judged_cpu = 1e9, modelled = 1e9, priced = 1e9, priced_cpu = 1e9, s = 0;
  size_t ops = 0, worlds = 0;
  int64_t tried = 0;
  for (int run = 0; run < runs; ++run) {
    auto start = std::chrono::steady_clock::now();
    Diagnostics notes;
    Result<StepGraph> graph = build_step_graph(*trace, notes);
    if (!graph) {
      std::fprintf(stderr, "%s\n", graph.error().text().c_str());
      return 2;
    }
    built = std::min(built, seconds_since(start));
    start = std::chrono::steady_clock::now();
    double cpu = cpu_seconds();
    const Slowdown found = slowdown(*trace, *graph);
    judged = std::min(judged, seconds_since(start));
    judged_cpu = std::min(judged_cpu, cpu_seconds() - cpu);
    ops = graph->size();
    worlds = 4 + found.types.size() + found.replicas.size() + found.stages.size();
    s = found.s;
    start = std::chrono::steady_clock::now();
    WhatIf model = WhatIf::of(*trace, std::move(*graph), recognise(*trace), notes);
    modelled = std::min(modelled, seconds_since(start));
    start = std::chrono::steady_clock::now();
    cpu = cpu_seconds();
    tried = price_fixes(model, {}).tried;
    priced = std::min(priced, seconds_since(start));
    priced_cpu = std::min(priced_cpu, cpu_seconds() - cpu);
  }
  std::printf("%zu %zu %.4f %.4f %.9f %.4f %.4f %.4f %.4f %lld\n", ops, worlds, built, judged, s, modelled, priced,
              judged_cpu, priced_cpu, static_cast<long long>(tried));
  return 0;
}
