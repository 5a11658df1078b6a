#include "diagnosis/causes/step_begins.h"

#include <algorithm>
#include <utility>

#include "base/number.h"

namespace stageline {
namespace {

struct LateBegin {
  uint32_t op;
  double late_ns;
};
struct BeginsOfWorker {
  std::vector<LateBegin> usual, in_long_steps;
  double sum_ns() const {  // of the usual ones
    return sum_over<double>(usual, &LateBegin::late_ns);
  }
};

// For each worker its first operation of the step that waits for nothing; CellTimes::kNone where it has none.
std::vector<uint32_t> first_of_step(const CauseScene& scene, const GraphStep& step) {
  const StepGraph& graph = scene.graph;
  std::vector<uint32_t> first(scene.times.workers().size(), CellTimes::kNone);
  for (uint32_t op = step.begin; op < step.end; ++op) {
    const uint32_t w = scene.times.worker_of(op);
    if (w == CellTimes::kNone || !graph.waits(op).empty()) continue;
    if (first[w] == CellTimes::kNone || graph.start_ns[op] < graph.start_ns[first[w]]) first[w] = op;
  }
  return first;
}

// For each worker its beginnings that are late compared with those of the same stage in the same step.
std::vector<BeginsOfWorker> compare_begins(const CauseScene& scene, double min_late_ns) {
  const std::vector<CellTimes::Worker>& workers = scene.times.workers();
  std::map<int32_t, std::vector<uint32_t>> by_stage;
  for (uint32_t w = 0; w < workers.size(); ++w) by_stage[workers[w].stage].push_back(w);
  std::vector<BeginsOfWorker> begins(workers.size());
  for (size_t s = 0; s < scene.graph.steps.size(); ++s) {
    const std::vector<uint32_t> first = first_of_step(scene, scene.graph.steps[s]);
    for (const auto& [stage, peers] : by_stage) {
      std::vector<double> delays;
      for (const uint32_t w : peers)
        if (first[w] != CellTimes::kNone) delays.push_back(scene.graph.delay_ns[first[w]]);
      if (delays.size() < 2) continue;
      std::ranges::sort(delays);
      for (const uint32_t w : peers) {
        if (first[w] == CellTimes::kNone) continue;
        const double own_ns = scene.graph.delay_ns[first[w]], late_ns = own_ns - median_beside(delays, own_ns);
        if (late_ns > min_late_ns)
          (scene.counts[s] ? begins[w].usual : begins[w].in_long_steps).push_back({first[w], late_ns});
      }
    }
  }
  return begins;
}

LateBegins describe(const CauseScene& scene, uint32_t worker, const BeginsOfWorker& begins) {
  LateBegins out{.worker = worker, .count = std::ssize(begins.usual)};
  std::map<uint32_t, double> late_ns;
  double max_ns = 0;
  for (const auto& [op, ns] : begins.usual) {
    late_ns[op] = ns;
    max_ns = std::max(max_ns, ns);
    out.each_ns += ns / begins.usual.size();
    if (scene.graph.cell[op] == kNoCell) continue;
    const int64_t start_ns = scene.trace.cells.start_ns[scene.graph.cell[op]];
    out.pauses.push_back({scene.graph.part[op], start_ns - static_cast<int64_t>(ns), start_ns});
  }
  for (const auto& [op, ns] : begins.in_long_steps)
    if (ns <= kMaxOfUsual * max_ns) late_ns[op] = ns;
  out.late_ns = std::make_shared<const std::map<uint32_t, double>>(std::move(late_ns));
  return out;
}

}  // namespace

std::vector<LateBegins> late_begins(const CauseScene& scene, const LateWorkers& late, double cell_ns) {
  constexpr double kAsLate = 2;  // factor within which beginnings are as late as the rank's other cells
  const std::vector<BeginsOfWorker> begins = compare_begins(scene, kLateStart * cell_ns);
  std::vector<std::pair<double, uint32_t>> worst;  // (sum of delays, negated; worker)
  for (uint32_t w = 0; w < begins.size(); ++w)
    if (std::ssize(begins[w].usual) >= kMinLateCells) worst.emplace_back(-begins[w].sum_ns(), w);
  std::ranges::sort(worst);
  if (worst.size() > kMaxWorkerCauses) worst.resize(kMaxWorkerCauses);
  std::vector<LateBegins> found;
  for (const auto& [sum_ns, w] : worst) {
    found.push_back(describe(scene, w, begins[w]));
    LateBegins& own = found.back();
    for (const auto& [worker, ns] : late)
      if (worker == w) own.as_late = own.each_ns <= kAsLate * ns && kAsLate * own.each_ns >= ns;
  }
  return found;
}

CauseWorld LateBegins::without() const {
  return [less = late_ns](uint32_t op, double&, double& delay) {
    if (const auto at = less->find(op); at != less->end()) delay -= at->second;
  };
}

}  // namespace stageline
