// The step graph of a recorded job and all worlds of `analyze slowdown`, after load.
//   stageline_slowdown_bench PATH [RUNS]
// Prints operations, worlds, and the least seconds of build_step_graph() and slowdown() over RUNS (default 5).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "engine/engine.h"
#include "pipeline/slowdown.h"

using namespace stageline;

namespace {

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
  double built = 1e9, judged = 1e9, s = 0;
  size_t ops = 0, worlds = 0;
  for (int run = 0; run < runs; ++run) {
    auto start = std::chrono::steady_clock::now();
    Diagnostics notes;
    const Result<StepGraph> graph = build_step_graph(*trace, notes);
    if (!graph) {
      std::fprintf(stderr, "%s\n", graph.error().text().c_str());
      return 2;
    }
    built = std::min(built, seconds_since(start));
    start = std::chrono::steady_clock::now();
    const Slowdown found = slowdown(*trace, *graph);
    judged = std::min(judged, seconds_since(start));
    ops = graph->size();
    worlds = 4 + found.types.size() + found.replicas.size() + found.stages.size();
    s = found.s;
  }
  std::printf("%zu %zu %.4f %.4f %.9f\n", ops, worlds, built, judged, s);
  return 0;
}
