// Measures the step graph of a recorded job and all scenarios of `analyze slowdown`, after loading.
//
//   stageline_slowdown_bench PATH [RUNS]
//
// It prints operations, scenarios, fixes tried, S. Then it prints the minimum wall and CPU seconds over RUNS (default
// 5) of build_step_graph(), slowdown(), recognise() with the model of what-if, and all fixes of what-if.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "diagnosis/what_if/what_if_fixes.h"
#include "engine/engine.h"
#include "pipeline/measure/slowdown.h"

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
  enum : size_t { kGraph, kWorlds, kModel, kFixes, kParts };
  std::array<double, kParts> wall, cpu;
  wall.fill(1e9);
  cpu.fill(1e9);
  const auto measure = [&](size_t part, const auto& body) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu_start = cpu_seconds();
    body();
    wall[part] = std::min(wall[part], seconds_since(start));
    cpu[part] = std::min(cpu[part], cpu_seconds() - cpu_start);
  };
  size_t ops = 0, worlds = 0;
  int64_t tried = 0;
  double s = 0;
  for (int run = 0; run < runs; ++run) {
    Diagnostics notes;
    std::optional<Result<StepGraph>> graph;
    measure(kGraph, [&] { graph.emplace(build_step_graph(*trace, pipeline_sums(*trace), notes)); });
    if (!*graph) {
      std::fprintf(stderr, "%s\n", (*graph).error().text().c_str());
      return 2;
    }
    std::optional<Slowdown> found;
    measure(kWorlds, [&] { found.emplace(slowdown(*trace, **graph)); });
    ops = (*graph)->size();
    worlds = 4 + found->types.size() + found->replicas.size() + found->stages.size();
    s = found->s;
    std::optional<WhatIf> model;
    const auto shared = std::make_shared<const StepGraph>(std::move(**graph));
    const Run known(*trace);
    measure(kModel, [&] { model.emplace(WhatIf::of(known, shared, notes)); });
    measure(kFixes, [&] { tried = price_fixes(*model, {}).tried; });
  }
  std::printf("%zu %zu %lld %.9f", ops, worlds, static_cast<long long>(tried), s);
  for (size_t part = 0; part < kParts; ++part) std::printf(" %.4f %.4f", wall[part], cpu[part]);
  std::printf("\n");
  return 0;
}
