#include "diagnosis/causes/step_begins.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace stageline {
namespace {

constexpr double kMaxOfPauses = 0.5;  // least share of the time before work that rows of one name must fill

}  // namespace

// Compares the first cell of a rank that waits for nobody with those of the same stage in other replicas: a rank that
// begins its steps late does something before them. Delays common to all ranks stay a line of the account.
std::vector<LateBegins> late_begins(const CauseScene& scene, const LateWorkers& late_workers, double cell_ns) {
  // A late worker's beginnings may be up to this many times as late as its other cells, or that many times less.
  constexpr double kAsLate = 2;
  const StepGraph& graph = scene.graph;
  const auto& workers = scene.times.workers();
  std::map<int32_t, std::vector<uint32_t>> by_stage;
  for (uint32_t w = 0; w < workers.size(); ++w) by_stage[workers[w].stage].push_back(w);
  std::vector<uint32_t> first(workers.size(), UINT32_MAX);  // index of an operation in the current step
  struct Begin {
    uint32_t op;
    double late_ns;
  };
  std::vector<std::vector<Begin>> late(workers.size()), in_long_steps(workers.size());
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    std::fill(first.begin(), first.end(), UINT32_MAX);
    for (uint32_t op = graph.steps[s].begin; op < graph.steps[s].end; ++op) {
      const uint32_t w = scene.times.worker_of(op);
      if (w != CellTimes::kNone && graph.waits(op).empty() &&
          (first[w] == UINT32_MAX || graph.start_ns[op] < graph.start_ns[first[w]]))
        first[w] = op;
    }
    for (const auto& [stage, peers] : by_stage) {
      std::vector<double> sorted;
      for (const uint32_t w : peers)
        if (first[w] != UINT32_MAX) sorted.push_back(graph.delay_ns[first[w]]);
      if (sorted.size() < 2) continue;
      std::sort(sorted.begin(), sorted.end());
      for (const uint32_t w : peers) {
        if (first[w] == UINT32_MAX) continue;
        const double own = graph.delay_ns[first[w]];
        const double others = median_of_others(
            sorted, std::lower_bound(sorted.begin(), sorted.end(), own) - sorted.begin());
        if (own - others > kLateStart * cell_ns)
          (scene.counts[s] ? late : in_long_steps)[w].push_back({first[w], own - others});
      }
    }
  }
  // All ranks are looked at, and each has a world of its own; as for other causes, those that lose most are reported.
  std::vector<std::pair<double, uint32_t>> worst;  // (sum of its delays, negated; worker)
  for (uint32_t w = 0; w < workers.size(); ++w) {
    if (std::ssize(late[w]) < kMinLateCells) continue;
    double sum = 0;
    for (const Begin& begin : late[w]) sum += begin.late_ns;
    worst.emplace_back(-sum, w);
  }
  std::sort(worst.begin(), worst.end());
  if (worst.size() > kMaxWorkerCauses) worst.resize(kMaxWorkerCauses);
  std::vector<LateBegins> found;
  for (const auto& [ns, w] : worst) {
    LateBegins own;
    own.worker = w;
    own.count = late[w].size();
    auto less = std::make_shared<std::map<uint32_t, double>>();
    double max_ns = 0;
    for (const Begin& begin : late[w]) max_ns = std::max(max_ns, begin.late_ns);
    for (const Begin& begin : in_long_steps[w])  // what usual steps do not know has a reason of its own
      if (begin.late_ns <= kMaxOfUsual * max_ns) (*less)[begin.op] = begin.late_ns;
    for (const Begin& begin : late[w]) {
      own.each_ns += begin.late_ns / late[w].size();
      (*less)[begin.op] = begin.late_ns;
      if (graph.cell[begin.op] == kNoCell) continue;
      const int64_t start = scene.trace.cells.start_ns[graph.cell[begin.op]];
      own.pauses.push_back({start - static_cast<int64_t>(begin.late_ns), start});
    }
    own.late_ns = std::move(less);
    const auto other = std::find_if(late_workers.begin(), late_workers.end(),
                                    [worker = w](const auto& late_one) { return late_one.first == worker; });
    own.as_late =
        other != late_workers.end() && own.each_ns <= kAsLate * other->second && kAsLate * own.each_ns >= other->second;
    found.push_back(std::move(own));
  }
  return found;
}

CauseWorld LateBegins::without() const {
  return [less = late_ns](uint32_t op, double&, double& delay) {
    if (const auto at = less->find(op); at != less->end()) delay -= at->second;
  };
}

std::string name_that_fills(const Trace& trace, std::vector<RankWindow> windows) {
  const Cells& cells = trace.cells;
  std::sort(windows.begin(), windows.end(), [](const RankWindow& a, const RankWindow& b) {
    return std::pair(a.part, a.from_ns) < std::pair(b.part, b.from_ns);
  });
  std::map<std::string_view, double> names;
  double all = 0;
  for (const RankWindow& window : windows) all += window.to_ns - window.from_ns;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells.kind[i] != CellKind::kOther) continue;
    const int32_t part = cells.part[i];
    auto at = std::partition_point(windows.begin(), windows.end(), [&](const RankWindow& w) {
      return w.part < part || (w.part == part && w.to_ns <= cells.start_ns[i]);
    });
    for (; at != windows.end() && at->part == part && at->from_ns < cells.end_ns[i]; ++at)
      names[trace.slice_name(cells.at(i))] +=
          std::min(at->to_ns, cells.end_ns[i]) - std::max(at->from_ns, cells.start_ns[i]);
  }
  for (const auto& [name, ns] : names)
    if (ns >= kMaxOfPauses * all) return std::string(name);
  return {};
}

}  // namespace stageline
