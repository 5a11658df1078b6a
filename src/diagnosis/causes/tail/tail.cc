// The exposed tail: collectives and the optimizer after (or before) all compute of a step, and idle time before these.
#include "diagnosis/causes/rank_windows.h"
#include "diagnosis/causes/telling.h"
#include "model/message_names.h"
#include "pipeline/replay/step_draft.h"

namespace stageline {
namespace {

struct TailOwn {
  double own_ns = 0, others_ns = 0;  // its time and that of the other stages, or of its twin
  // The name of the counterpart of a tail that gathers or scatters. The counterpart moves as many bytes back between
  // the same ranks and takes far less time.
  std::string twin = {};
  // True when the time of some stage holds no waiting for a rank that was not read.
  bool known = true;
};

// A tail is one stage's own if that stage takes this many times the longest of the others.
constexpr double kFarLonger = 2;
// Gradients may be scattered in fp32 and parameters gathered in bf16: one moves twice the bytes of the other by design.
constexpr double kBytesOfTwin = 2;
constexpr size_t kMaxNames = 200;  // names of collectives that are distinguished; further ones share one

using TailNames = std::map<std::pair<CellKind, std::string>, uint8_t>;  // → the number of the name, from 1
using MedianTails = std::map<uint8_t, std::map<int32_t, double>>;       // for each number the median time on each stage

// Where parameters are sharded, a gather and a scatter move the same bytes between the same ranks, and links are
// equally fast both ways. If one of the two takes far longer than the other on every stage, it gets the other as
// `twin`.
void tell_twin(const TailNames& names, const MedianTails& median_ns, const std::string& name, uint8_t number,
               TailOwn& tail) {
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
    if (!(shortest > kFarLonger * kBytesOfTwin * longest)) continue;
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

// The tails of a run by name: collectives and optimizers that end after their rank's last compute cell of a step or
// begin before its first one.
struct Tails {
  TailNames names;
  std::vector<uint8_t> of_op;  // for each operation the number of its name; 0: no tail
};
Tails find_tails(const CauseScene& scene) {
  const StepGraph& g = scene.graph;
  Tails tails{{}, std::vector<uint8_t>(g.size(), 0)};
  std::vector<int64_t> first(g.stage_of.size()), last(g.stage_of.size());
  for (const GraphStep& step : g.steps) {
    std::ranges::fill(first, INT64_MAX);
    std::ranges::fill(last, INT64_MIN);
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
      if (g.kind[op] == CellKind::kCollective) {
        const std::string_view own = scene.trace.slice_name(scene.trace.cells.at(g.cell[op]));
        name = dashed(own.starts_with("hcom_") ? hccl_type(own) : own);  // without its number, which each rank counts
      }
      if (tails.names.size() == kMaxNames) name.clear();
      const auto number = static_cast<uint8_t>(tails.names.size() + 1);
      tails.of_op[op] = tails.names.try_emplace({g.kind[op], name}, number).first->second;
    }
  }
  return tails;
}

// Returns the median time of each name on each stage.
MedianTails median_tails(const CauseScene& scene, const Tails& tails) {
  const StepGraph& g = scene.graph;
  std::map<uint8_t, std::map<int32_t, std::vector<double>>> taken;
  scene.each_op([&](uint32_t op, size_t) {
    if (tails.of_op[op] != 0 && g.stage(op) != kUnknown) taken[tails.of_op[op]][g.stage(op)].push_back(g.dur_ns[op]);
  });
  MedianTails median_ns;
  for (auto& [number, by_stage] : taken)
    for (auto& [stage, values] : by_stage) median_ns[number][stage] = std::max(0.0, median_of(std::move(values)));
  return median_ns;
}

// Returns whether a collective ends on all stages at once, as one over all ranks of a job does, in over half of the
// steps.
bool ends_at_once(const CauseScene& scene, const Tails& tails, uint8_t number) {
  const StepGraph& g = scene.graph;
  struct Ends {
    std::set<int32_t> stages;
    int64_t first = INT64_MAX, last = INT64_MIN;
  };
  std::vector<Ends> ends(g.steps.size());
  scene.each_op([&](uint32_t op, size_t s) {
    if (tails.of_op[op] != number) return;
    ends[s].stages.insert(g.stage(op));
    ends[s].first = std::min(ends[s].first, g.ended_ns(op)), ends[s].last = std::max(ends[s].last, g.ended_ns(op));
  });
  std::erase_if(ends, [](const Ends& of) { return of.stages.size() < 2; });
  return 2 * std::ranges::count_if(ends, [](const Ends& of) { return of.last <= of.first + kSameNs; }) >
         std::ssize(ends);
}

// The longest time of a collective without a wait for a rank that was not read: the highest median of the stages that
// every replica recorded. 0 where there is no such stage, and where it may be a collective over all stages.
double known_tail_ns(const CauseScene& scene, const Tails& tails, uint8_t number,
                     const std::map<int32_t, double>& medians) {
  if (scene.coverage.replicas_unread() > 0 || ends_at_once(scene, tails, number)) return 0;
  double known_ns = 0;
  for (const auto& [stage, ns] : medians)
    if (scene.coverage.read_everywhere(stage)) known_ns = std::max(known_ns, ns);
  return known_ns;
}

// The stage on which a tail takes the longest time, and the next longest time of a stage; kUnknown and 0: one stage.
struct LongestStage {
  int32_t stage = kUnknown;
  double own_ns = 0, others_ns = 0;
  bool stands_out() const { return stage != kUnknown && own_ns > kFarLonger * others_ns; }
};
LongestStage longest_stage(const std::map<int32_t, double>& medians) {
  LongestStage longest;
  if (medians.size() < 2) return longest;
  for (const auto& [stage, ns] : medians)
    if (longest.stage == kUnknown || ns > longest.own_ns) longest.stage = stage, longest.own_ns = ns;
  for (const auto& [stage, ns] : medians)
    if (stage != longest.stage) longest.others_ns = std::max(longest.others_ns, ns);
  return longest;
}

// Idle time before tails although everything that they wait for has ended. It is the delay of even the least late
// operation of a type (launch_delays), which no other rank explains. Before optimizers it is also the time in which all
// ranks wait for each other in an exchange that was not recorded.
Suspect idle_before(const CauseScene& scene, const std::shared_ptr<const Tails>& tails) {
  const StepGraph& g = scene.graph;
  const auto unrecorded = [&g](uint32_t op) { return g.kind[op] == CellKind::kCollective && g.cell[op] == kNoCell; };
  std::vector<double> together_ns(g.steps.size(), 0);
  scene.each_op([&](uint32_t op, size_t s) {
    if (unrecorded(op)) together_ns[s] = std::max(together_ns[s], g.dur_ns[op]);
  });
  std::vector<RankWindow> windows;
  scene.each_op([&](uint32_t op, size_t s) {
    if (tails->of_op[op] == 0) return;
    const double before = g.delay_ns[op] + (g.kind[op] == CellKind::kOptimizer ? together_ns[s] : 0);
    if (!(before > 0)) return;
    const Cells& cells = scene.trace.cells;
    const int64_t start = cells.start_ns[g.cell[op]];
    windows.push_back({cells.part[g.cell[op]], start - static_cast<int64_t>(before), start});
  });
  Suspect idle = tail_suspect({.kind = PlaceKind::kHost, .name = name_that_fills(scene.trace, std::move(windows))}, {});
  idle.without = [tails, unrecorded](uint32_t op, double& dur, double& delay) {
    if (tails->of_op[op] != 0) delay = std::min(delay, 0.0);
    if (unrecorded(op)) dur = std::min(dur, 0.0);
  };
  return idle;
}

// The scenario in which each tail is shorter by saved(op).
CauseWorld shortened(const CauseScene& scene, std::function<double(uint32_t)> saved) {
  return [shorter = CarriedTails::Shorter(scene.carried, std::move(saved))](uint32_t op, double& dur, double& delay) {
    shorter.apply(op, dur, delay);
  };
}

}  // namespace

// For each name, a world without its tails. Where one stage takes far longer than all others, its extra time is a cause
// of its own.
void suspect_tail(CauseScene& scene, std::vector<Suspect>& out) {
  const StepGraph& g = scene.graph;
  const auto tails = std::make_shared<const Tails>(find_tails(scene));
  if (tails->names.empty()) return;
  MedianTails median_ns = median_tails(scene, *tails);
  const bool all_read = scene.coverage.whole() && scene.coverage.replicas_unread() == 0;
  for (const auto& [key, number] : tails->names) {
    const LongestStage longest = longest_stage(median_ns[number]);
    const bool may_wait = !all_read && key.first == CellKind::kCollective;
    const double known_ns = may_wait ? known_tail_ns(scene, *tails, number, median_ns[number]) : 0;
    const bool known = !may_wait || known_ns > 0;
    // The time of an operation, without what may be a wait for a rank that was not read. If no part is free of that, it
    // is all of its time, as a line of the breakdown.
    const auto own_ns = [tails, &scene, &g, number = number, known_ns](uint32_t op) {
      if (tails->of_op[op] != number) return 0.0;
      const double dur = std::max(0.0, g.dur_ns[op]);
      return known_ns > 0 && !scene.coverage.read_everywhere(g.stage(op)) ? std::min(dur, known_ns) : dur;
    };
    const Place place{.kind = key.first == CellKind::kOptimizer ? PlaceKind::kOptimizer : PlaceKind::kCollective,
                      .name = key.second};
    if (longest.stands_out()) {
      Place of_stage = place;
      of_stage.stage = longest.stage;
      Suspect suspect =
          tail_suspect(of_stage, {.own_ns = longest.own_ns, .others_ns = longest.others_ns, .known = known});
      suspect.without = shortened(scene, [own_ns, &g, longest](uint32_t op) {
        return g.stage(op) == longest.stage ? std::max(0.0, own_ns(op) - longest.others_ns) : 0.0;
      });
      out.push_back(std::move(suspect));
    }
    TailOwn tail{.known = known};
    if (key.first == CellKind::kCollective) tell_twin(tails->names, median_ns, key.second, number, tail);
    Suspect suspect = tail_suspect(place, tail);
    suspect.without = shortened(scene, [own_ns, &g, longest](uint32_t op) {
      const bool extra = longest.stands_out() && g.stage(op) == longest.stage;
      return extra ? std::min(own_ns(op), longest.others_ns) : own_ns(op);
    });
    out.push_back(std::move(suspect));
  }
  out.push_back(idle_before(scene, tails));
}

// A tail shorter than a cell belongs to every training loop, as time between steps does. So may as much of a longer
// one, which widens its error. The time of one stage beyond the others needs no such allowance. A tail that takes far
// longer than its twin may need as much as the twin. A tail may also be waiting for stages or replicas that were not
// read.
CauseUse judge_tail(Cause& cause, const JudgeFacts& facts) {
  const auto& own = cause.own.as<TailOwn>();
  const Place& place = cause.place();
  const bool idle = place.kind == PlaceKind::kHost;
  const bool beside = place.stage != kUnknown || !own.twin.empty();
  const double min = beside ? kMinLost * facts.step_ns : std::max(kMinTail * facts.step_ns, facts.shortest_ns);
  if (cause.price.lost_ns < min)
    // Where these operations start at once there is no time before them to report.
    return idle && cause.price.lost_ns < 1 ? CauseUse::kDrop : CauseUse::kLine;
  const double usual_ns = own.twin.empty() ? facts.shortest_ns : own.others_ns;
  if (place.stage == kUnknown) cause.price.open_ns = std::hypot(cause.price.open_ns, usual_ns);
  const bool all_read = facts.coverage.whole() && facts.coverage.replicas_unread() == 0;
  const bool known = place.kind == PlaceKind::kOptimizer || (!idle && own.known);
  return all_read || known ? CauseUse::kCause : CauseUse::kLine;
}

Telling tell_tail(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  const auto& own = c.own.as<TailOwn>();
  const Place& place = c.place();
  Args args = context.args(c);
  args.set("lost_time", human_duration(c.price.lost_ns));
  Telling telling;
  if (place.kind == PlaceKind::kHost) {  // idle time before tails
    telling = say_cause("tail.exposed", "tail.exposed.idle", args);
    telling.key = place.name.empty() ? "tail:idle" : "tail:" + dashed(place.name);
  } else {
    const bool optimizer = place.kind == PlaceKind::kOptimizer;
    args.set("own", own.own_ns > 0 ? human_duration(own.own_ns) : "");
    args.set("others", own.others_ns > 0 ? human_duration(own.others_ns) : "");
    args.flag("lone", context.replicas <= 1);
    args.set("what", words(optimizer ? "tail.exposed.what.optimizer" : "tail.exposed.what.collective", args));
    telling = say_cause("tail.exposed",
                        place.stage != kUnknown ? "tail.exposed.stage"
                        : optimizer             ? "tail.exposed.optimizer"
                                                : "tail.exposed",
                        args);
    if (!own.twin.empty())
      telling.detail +=
          words("tail.exposed.twin", Args().set("twin", own.twin).set("others", human_duration(own.others_ns)));
  }
  telling.table = {"waterfall", "waterfall"};
  return telling;
}

}  // namespace stageline
