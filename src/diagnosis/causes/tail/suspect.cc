#include "diagnosis/causes/suspect.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "base/text.h"
#include "diagnosis/causes/rank_windows.h"
#include "diagnosis/causes/tail/tail.h"

namespace stageline {

extern const CauseKind tail_cause;

namespace {

// A tail is one stage's own if that stage takes this many times the longest of the others.
constexpr double kFarLonger = 2;
constexpr size_t kMaxNames = 200;  // names of collectives that are distinguished; further ones share one

using TailNames = std::map<std::pair<CellKind, std::string>, uint8_t>;

// Where parameters are sharded, a gather and a scatter move the same bytes between the same ranks, and links are
// equally quick both ways. If one of the two takes far longer than the other on every stage, it gets the other as
// `twin`.
void tell_twin(const TailNames& names, const std::map<uint8_t, std::map<int32_t, double>>& median_ns,
               const std::string& name, uint8_t number, TailOwn& tail) {
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
    tail.twin = key.second;
    tail.own_ns = shortest, tail.others_ns = longest;
    return;
  }
}

Suspect tail_suspect(Place place, TailOwn own) {
  Suspect suspect;
  suspect.cause.kind = &tail_cause;
  suspect.cause.figures.stage = place.stage;
  suspect.cause.places = {std::move(place)};
  suspect.cause.own = std::move(own);
  suspect.cause.certain = true;
  return suspect;
}

// For each name, a world without the time of collectives and optimizers that end after their rank's last compute cell
// of a step or begin before its first one.
void suspect_tails(CauseScene& scene, std::vector<Suspect>& out) {
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
      const size_t part = g.part[op];
      first[part] = std::min(first[part], g.start_ns[op]);
      last[part] = std::max(last[part], g.ended_ns(op));
    }
    for (uint32_t op = step.begin; op < step.end; ++op) {
      if ((g.kind[op] != CellKind::kCollective && g.kind[op] != CellKind::kOptimizer) || g.types[g.type[op]].inside)
        continue;
      const size_t part = g.part[op];
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
    for (const auto& [stage, ns] : medians)
      if (longest == kUnknown || ns > medians.at(longest)) longest = stage;
    if (medians.size() > 1) {
      std::vector<double> beside;
      for (const auto& [stage, ns] : medians)
        if (stage != longest) beside.push_back(ns);
      own = medians.at(longest);
      others = *std::max_element(beside.begin(), beside.end());  // the next longest one
    }
    const Place place{.kind = key.first == CellKind::kOptimizer ? PlaceKind::kOptimizer : PlaceKind::kCollective,
                      .name = key.second};
    const bool one_stage = medians.size() > 1 && own > kFarLonger * others;
    if (one_stage) {
      Place of_stage = place;
      of_stage.stage = longest;
      Suspect suspect = tail_suspect(of_stage, {.own_ns = own, .others_ns = others});
      suspect.without = [of_op, number = number, &g, longest, others](uint32_t op, double& dur, double&) {
        if ((*of_op)[op] == number && g.stage(op) == longest) dur = std::min(dur, others);
      };
      out.push_back(std::move(suspect));
    }
    TailOwn tail;
    if (key.first == CellKind::kCollective) tell_twin(names, median_ns, key.second, number, tail);
    Suspect suspect = tail_suspect(place, tail);
    suspect.without = [of_op, number = number, one_stage, &g, longest, others](uint32_t op, double& dur, double&) {
      if ((*of_op)[op] != number) return;
      // The extra time of one stage is a cause of its own.
      dur = std::min(dur, one_stage && g.stage(op) == longest ? std::max(0.0, dur - others) : 0.0);
    };
    out.push_back(std::move(suspect));
  }
  if (names.empty()) return;
  // Idle time before tails though everything that they wait for has ended. It is the delay that even the least late
  // operation of a type has (launch_delays), which no other rank explains; and before optimizers also the time in which
  // all ranks wait for each other in an exchange that nobody recorded.
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
  Suspect idle = tail_suspect({.kind = PlaceKind::kHost, .name = name_that_fills(scene.trace, std::move(windows))}, {});
  idle.without = [of_op, unrecorded](uint32_t op, double& dur, double& delay) {
    if ((*of_op)[op] != 0) delay = std::min(delay, 0.0);
    if (unrecorded(op)) dur = std::min(dur, 0.0);
  };
  out.push_back(std::move(idle));
}

// One that is shorter than a cell belongs to every training loop, as time between steps does, and so may as much of a
// longer one, by which its error is widened. What one stage takes beyond the others needs no such allowance. A tail
// that takes far longer than its twin may need as much as the twin. A tail may also be waiting for stages or replicas
// that were not read.
CauseUse judge_tail(Cause& cause, const JudgeFacts& facts) {
  const auto& own = cause.own.as<TailOwn>();
  const Place& place = cause.place();
  const bool idle = place.kind == PlaceKind::kHost;
  const bool beside = place.stage != kUnknown || !own.twin.empty();
  const double least = beside ? kMinLost * facts.step_ns : std::max(kMinTail * facts.step_ns, facts.shortest_ns);
  if (cause.price.lost_ns < least)
    // Where these operations start at once there is no time before them to tell of.
    return idle && cause.price.lost_ns < 1 ? CauseUse::kDrop : CauseUse::kLine;
  const double usual_ns = own.twin.empty() ? facts.shortest_ns : own.others_ns;
  double& error_ns = cause.price.lost_error_ns;
  if (place.stage == kUnknown) error_ns = std::hypot(std::isnan(error_ns) ? 0 : error_ns, usual_ns / 2);
  const bool all_read = facts.coverage.whole() && facts.coverage.replicas_unread() == 0;
  return all_read || place.kind == PlaceKind::kOptimizer ? CauseUse::kCause : CauseUse::kLine;
}

constexpr std::string_view kLines[] = {"tail"};

}  // namespace

const CauseKind tail_cause = {.id = "tail",
                              .name = "exposed tail",
                              .measured = Measured::kRecorded,
                              .takes_from = kLines,
                              .suspect = suspect_tails,
                              .judge = judge_tail,
                              .tell = tell_tail};

}  // namespace stageline
