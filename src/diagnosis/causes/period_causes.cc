#include "diagnosis/causes/period_causes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "base/text.h"
#include "diagnosis/causes/step_begins.h"

namespace stageline {
namespace {

// A tail is one stage's own if that stage takes this many times the longest of the others.
constexpr double kFarLonger = 2;
constexpr size_t kMaxNames = 200;  // names of collectives that are told apart; further ones share one

// What the gaps hold under one name; "" for time that nobody recorded.
struct Held {
  double ns = 0;
  int32_t part = kUnknown;
  std::vector<int32_t> steps;
  std::map<int32_t, double> by_step;
  void add(double more_ns, int32_t by_part, int32_t step) {
    if (!(more_ns > 0)) return;
    part = steps.empty() || part == by_part ? by_part : kUnknown;
    ns += more_ns;
    by_step[step] += more_ns;
    steps.push_back(step);
  }
};

Cause between_cause(const std::string& name, const Held& held, const StepPeriods& periods, bool sometimes) {
  const size_t gaps = periods.gaps.size();
  Cause cause;
  cause.kind = CauseKind::kBetweenSteps;
  cause.name = name;
  cause.part = held.part;
  cause.at_steps = held.steps;
  cause.count = static_cast<int64_t>(held.steps.size());
  cause.of = static_cast<int64_t>(gaps);
  cause.pause_ns = held.ns / static_cast<double>(held.steps.size());
  cause.lost_ns = held.ns / static_cast<double>(gaps);
  cause.sometimes = sometimes;
  cause.outside = sometimes && !periods.long_gaps.empty();
  cause.certain = true;
  return cause;
}

}  // namespace

std::vector<Cause> between_causes(const StepPeriods& periods) {
  std::map<std::string, Held> usual, extra;
  for (size_t i = 0; i < periods.gaps.size(); ++i) {
    const StepGap& gap = periods.gaps[i];
    double left = gap.ns, beyond = periods.beyond_ns(i);
    for (const GapPhase& phase : gap.phases) {
      const double more = std::min(beyond, phase.ns);  // the longest phases count first as what makes a gap long
      extra[phase.name].add(more, phase.part, gap.step);
      usual[phase.name].add(phase.ns - more, phase.part, gap.step);
      beyond -= more, left -= phase.ns;
    }
    const double more = std::min(beyond, std::max(0.0, left));
    extra[""].add(more, kUnknown, gap.step);
    usual[""].add(left - more, kUnknown, gap.step);
  }
  std::vector<Cause> causes;
  for (const auto* held : {&usual, &extra})
    for (const auto& [name, sum] : *held) {
      if (!(sum.ns > 0)) continue;
      causes.push_back(between_cause(name, sum, periods, held == &extra));
      causes.back().held_ns = sum.by_step;
      for (const StepGap& gap : periods.gaps) causes.back().held_ns.try_emplace(gap.step, 0.0);
    }
  return causes;
}

namespace {

using TailNames = std::map<std::pair<CellKind, std::string>, uint8_t>;

// Where parameters are sharded, a gather and a scatter move the same bytes between the same ranks, and links are
// equally quick both ways. If one of the two takes far longer than the other on every stage, it gets the other as
// `twin`.
void tell_twin(const TailNames& names, const std::map<uint8_t, std::map<int32_t, double>>& median_ns,
               const std::string& name, uint8_t number, Cause& cause) {
  const bool gathers = name.find("gather") != std::string::npos;
  if (!gathers && name.find("scatter") == std::string::npos) return;
  const auto own = median_ns.find(number);
  if (own == median_ns.end()) return;
  for (const auto& [key, other] : names) {
    if (key.first != CellKind::kCollective || key.second.find(gathers ? "scatter" : "gather") == std::string::npos)
      continue;
    const auto theirs = median_ns.find(other);
    if (theirs == median_ns.end() || theirs->second.size() != own->second.size()) continue;
    double longest = 0, shortest = std::numeric_limits<double>::infinity();
    for (const auto& [stage, ns] : theirs->second) longest = std::max(longest, ns);
    for (const auto& [stage, ns] : own->second) shortest = std::min(shortest, ns);
    if (!(shortest > kFarLonger * longest)) continue;
    cause.twin = key.second;
    cause.times = {{CellKind::kCollective, shortest, longest}};
    return;
  }
}

}  // namespace

void draft_tails(const CauseScene& scene, std::vector<CauseDraft>& out) {
  const StepGraph& g = scene.graph;
  // For each operation the number of its name; 0: no tail.
  const auto of_op = std::make_shared<std::vector<uint8_t>>(g.size(), uint8_t{0});
  std::map<std::pair<CellKind, std::string>, uint8_t> names;
  std::vector<int64_t> first(g.stage_of.size()), last(g.stage_of.size());
  for (const GraphStep& step : g.steps) {
    std::fill(first.begin(), first.end(), INT64_MAX);
    std::fill(last.begin(), last.end(), INT64_MIN);
    for (uint32_t op = step.begin; op < step.end; ++op) {
      if (!is_compute(g.kind[op])) continue;
      const auto part = static_cast<size_t>(g.part[op]);
      first[part] = std::min(first[part], g.start_ns[op]);
      last[part] = std::max(last[part], g.ended_ns(op));
    }
    for (uint32_t op = step.begin; op < step.end; ++op) {
      if (g.kind[op] != CellKind::kCollective && g.kind[op] != CellKind::kOptimizer) continue;
      const auto part = static_cast<size_t>(g.part[op]);
      if (g.cell[op] == kNoCell || (g.ended_ns(op) <= last[part] && g.start_ns[op] >= first[part])) continue;
      std::string name;
      if (g.kind[op] == CellKind::kCollective) name = dashed(scene.trace.slice_name(scene.trace.cells.at(g.cell[op])));
      if (names.size() == kMaxNames) name.clear();
      (*of_op)[op] = names.try_emplace({g.kind[op], name}, static_cast<uint8_t>(names.size() + 1)).first->second;
    }
  }
  // Median times for each name and stage. Where one stage takes far longer than all others, it is compared with them.
  std::map<uint8_t, std::map<int32_t, std::vector<double>>> taken;
  scene.each_op([&](uint32_t op, size_t) {
    if ((*of_op)[op] != 0 && g.stage(op) != kUnknown) taken[(*of_op)[op]][g.stage(op)].push_back(g.dur_ns[op]);
  });
  std::map<uint8_t, std::map<int32_t, double>> median_ns;
  for (auto& [number, by_stage] : taken)
    for (auto& [stage, values] : by_stage) median_ns[number][stage] = std::max(0.0, median_of(std::move(values)));
  for (const auto& [key, number] : names) {
    int32_t longest = kUnknown;
    double own = 0, others = 0;
    const std::map<int32_t, double>& medians = median_ns[number];
    for (const auto& [stage, ns] : medians) {
      if (longest == kUnknown || ns > medians.at(longest)) longest = stage;
    }
    if (medians.size() > 1) {
      std::vector<double> beside;
      for (const auto& [stage, ns] : medians)
        if (stage != longest) beside.push_back(ns);
      own = medians.at(longest);
      others = *std::max_element(beside.begin(), beside.end());  // the next longest one
    }
    const bool one_stage = medians.size() > 1 && own > kFarLonger * others;
    if (one_stage) {
      CauseDraft draft;
      draft.cause.kind = CauseKind::kTail;
      draft.cause.name = key.second;
      draft.cause.cell_kind = key.first;
      draft.cause.stage = longest;
      draft.cause.times = {{key.first, own, others}};
      draft.cause.certain = true;
      draft.without = [of_op, number = number, &g, longest, others](uint32_t op, double& dur, double&) {
        if ((*of_op)[op] == number && g.stage(op) == longest) dur = std::min(dur, others);
      };
      out.push_back(std::move(draft));
    }
    CauseDraft draft;
    draft.cause.kind = CauseKind::kTail;
    draft.cause.name = key.second;
    draft.cause.cell_kind = key.first;
    draft.cause.certain = true;
    if (key.first == CellKind::kCollective) tell_twin(names, median_ns, key.second, number, draft.cause);
    draft.without = [of_op, number = number, one_stage, &g, longest, others](uint32_t op, double& dur, double&) {
      if ((*of_op)[op] != number) return;
      // The extra time of one stage is told by a cause of its own.
      dur = std::min(dur, one_stage && g.stage(op) == longest ? std::max(0.0, dur - others) : 0.0);
    };
    out.push_back(std::move(draft));
  }
  if (names.empty()) return;
  // Idle time before tails though everything that they wait for has ended. It is the delay that even the least late
  // operation of a type has (launch_delays), which no other rank explains; and before optimizers also the time in which
  // all ranks wait for each other in an exchange that nobody recorded.
  CauseDraft idle;
  idle.cause.kind = CauseKind::kTail;
  idle.cause.cell_kind = CellKind::kOther;
  idle.cause.certain = true;
  const auto unrecorded = [&g](uint32_t op) { return g.kind[op] == CellKind::kCollective && g.cell[op] == kNoCell; };
  std::vector<double> together_ns(g.steps.size(), 0);
  scene.each_op([&](uint32_t op, size_t s) {
    if (unrecorded(op)) together_ns[s] = std::max(together_ns[s], g.dur_ns[op]);
  });
  std::vector<RankWindow> windows;
  scene.each_op([&](uint32_t op, size_t s) {
    if ((*of_op)[op] == 0) return;
    const double before = g.delay_ns[op] + (g.kind[op] == CellKind::kOptimizer ? together_ns[s] : 0);
    if (!(before > 0)) return;
    const Cells& cells = scene.trace.cells;
    const int64_t start = cells.start_ns[g.cell[op]];
    windows.push_back({cells.part[g.cell[op]], start - static_cast<int64_t>(before), start});
  });
  idle.cause.name = name_that_fills(scene.trace, std::move(windows));
  idle.without = [of_op, unrecorded](uint32_t op, double& dur, double& delay) {
    if ((*of_op)[op] != 0) delay = std::min(delay, 0.0);
    if (unrecorded(op)) dur = std::min(dur, 0.0);
  };
  out.push_back(std::move(idle));
}

}  // namespace stageline
