#include "diagnosis/causes/long_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "pipeline/measure/op_values.h"
#include "pipeline/sums/stage_costs.h"

namespace stageline {
namespace {

constexpr size_t kMaxSuspects = 12;  // most operations, and most ranks, that are tried one by one
// The first is the minimum share of a step's excess for trying an operation. The second is the share of the worst
// rank's excess that another rank must have to be above noise.
constexpr double kMinOfExcess = 0.1;
constexpr double kMaxOfExcess = 0.5;  // least share of the excess that must go away with what is named
constexpr size_t kMaxSteps = 16;      // most long steps that are looked into
constexpr double kMuchMore = 1.25;    // all replicas' operations must explain this many times what one operation does
// Least share of all extra time that ranks must hold, and of the ranks that must be long.
constexpr double kNearlyAll = 0.8;
constexpr double kLateTime = 0.1;  // least delay of a late start, as a share of the cell's usual time
constexpr double kLong = 1.1;      // least time of a long rank, to its usual one
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Finder {
 public:
  Finder(const CauseScene& scene, const OpWorld& world)
      : scene_(scene), g_(scene.graph), world_(world), messages_(scene.trace, scene.graph) {
    const auto key = [&](uint32_t op) {
      const uint32_t worker = scene_.times.worker_of(op);
      return worker == CellTimes::kNone ? static_cast<uint32_t>(scene_.times.place_count() + g_.type[op])
                                        : static_cast<uint32_t>(scene_.times.place_of(op));
    };
    const std::vector<OpStretch> counted = counted_ops(g_, scene.counts);
    const size_t keys = scene.times.place_count() + g_.types.size();
    usual_dur_ = OpValues(counted, keys, key, [&](uint32_t op) { return times(op).first; }).take_medians();
    usual_delay_ = OpValues(counted, keys, key, [&](uint32_t op) { return times(op).second; }).take_medians();
    key_ = key;
  }

  void look_at(const GraphStep& step, LongStep& found) const {
    const size_t n = step.end - step.begin;
    OpTimes base{std::vector<double>(n), std::vector<double>(n)};
    for (size_t i = 0; i < n; ++i)
      std::tie(base.dur_ns[i], base.delay_ns[i]) = times(step.begin + static_cast<uint32_t>(i));
    const double whole = end_of(step, base);
    struct Suspect {
      double excess;
      std::vector<uint32_t> ops;
      bool delay;
    };
    std::vector<Suspect> suspects;
    std::map<Place, Suspect> places;  // by place, over all replicas
    Excesses excesses;
    for (uint32_t i = 0; i < n; ++i) {
      const auto op = step.begin + i;
      const auto [dur, delay] = usual(op);
      const bool computes = scene_.times.worker_of(op) != CellTimes::kNone;
      if (computes) {
        PartExcess& part = excesses.by_part[g_.part[op]];
        part.own_ns += base.dur_ns[i], part.usual_ns += dur;
        part.late_ns += std::max(0.0, base.delay_ns[i] - delay);
      }
      for (const bool is_delay : {false, true}) {
        const double excess = is_delay ? base.delay_ns[i] - delay : base.dur_ns[i] - dur;
        if (!(excess > 0)) continue;
        if (!is_delay && is_message(g_.kind[op])) excesses.by_link[link_of(op)].push_back(op);
        if (excess < kMinOfExcess * found.excess_ns) continue;
        suspects.push_back({excess, members_of(op), is_delay});
        Suspect& place =
            places.try_emplace(Place{g_.stage(op), g_.kind[op], g_.micro_batch[op], g_.chunk[op], is_delay}, Suspect{})
                .first->second;
        place.excess = std::max(place.excess, excess);
        place.delay = is_delay;
        place.ops.insert(place.ops.end(), suspects.back().ops.begin(), suspects.back().ops.end());
      }
    }
    const auto max_first = [](std::vector<Suspect>& list) {
      std::stable_sort(list.begin(), list.end(),
                       [](const Suspect& a, const Suspect& b) { return a.excess > b.excess; });
      if (list.size() > kMaxSuspects) list.resize(kMaxSuspects);
    };
    max_first(suspects);
    std::vector<Suspect> everywhere;
    for (auto& [place, suspect] : places)
      if (replicas_of(suspect.ops) > 1) everywhere.push_back(std::move(suspect));
    max_first(everywhere);
    const Suspect* best = nullptr;
    double most = 0;
    // The same operation in several replicas must explain much more than one of them alone, or that one is the cause.
    const auto try_all = [&](const std::vector<Suspect>& list, double least) {
      for (const Suspect& s : list) {
        OpTimes world = base;
        for (const uint32_t op : s.ops) {
          const auto [dur, delay] = usual(op);
          (s.delay ? world.delay_ns : world.dur_ns)[op - step.begin] = s.delay ? delay : dur;
        }
        const double gain = whole - end_of(step, world);
        if (gain <= least * most) continue;
        most = gain, best = &s;
      }
    };
    try_all(suspects, 1);
    try_all(everywhere, kMuchMore);
    if (best && most >= kMaxOfExcess * found.excess_ns) {
      uint32_t worst = best->ops.front();
      const auto of = [&](uint32_t op) { return (best->delay ? base.delay_ns : base.dur_ns)[op - step.begin]; };
      for (const uint32_t op : best->ops)
        if (of(op) > of(worst)) worst = op;
      name(worst, best->delay, best->excess, base, step, found);
      found.replicas = replicas_of(best->ops);
      found.share = most / found.excess_ns;
      return;
    }
    by_ranks(step, base, whole, excesses, found);
  }

 private:
  using Link = std::pair<int32_t, int32_t>;
  // Stage, kind, micro-batch, chunk, whether its delay is meant.
  using Place = std::tuple<int32_t, CellKind, int32_t, int32_t, bool>;
  // Times of the compute cells of one rank: the measured one, the usual one, and the delay of their starts.
  struct PartExcess {
    double own_ns = 0, usual_ns = 0, late_ns = 0;
    double excess_ns() const { return late_ns + std::max(0.0, own_ns - usual_ns); }
  };
  struct Excesses {
    std::map<int32_t, PartExcess> by_part;
    std::map<Link, std::vector<uint32_t>> by_link;  // messages that took longer than usual
  };

  std::pair<double, double> times(uint32_t op) const {
    double dur = 0, delay = 0;
    world_(op, dur, delay);
    return {dur, delay};
  }
  std::pair<double, double> usual(uint32_t op) const {
    const uint32_t key = key_(op);
    const auto known = [](double ns) { return std::isnan(ns) ? 0.0 : ns; };
    return {known(usual_dur_[key]), known(usual_delay_[key])};
  }
  double end_of(const GraphStep& step, const OpTimes& times) const {
    const ReplayedOps run = replay_step_ops(g_, step, times);
    double end = 0;
    for (size_t i = 0; i < run.end_ns.size(); ++i)
      if (g_.closes(step.begin + i)) end = std::max(end, run.end_ns[i]);
    return end;
  }
  // The operations that take the same time as this one: a send and its receive; otherwise just itself.
  std::vector<uint32_t> members_of(uint32_t op) const {
    if (g_.group(op) == kNoGroup) return {op};
    std::vector<uint32_t> members;
    for (uint32_t i = g_.groups[g_.group(op)].begin; i < g_.groups[g_.group(op)].end; ++i) members.push_back(i);
    return members;
  }

  void name(uint32_t op, bool delay, double excess, const OpTimes& base, const GraphStep& step, LongStep& found) const {
    found.op = op;
    found.cell = g_.cell[op];
    found.part = g_.part[op];
    found.stage = g_.stage(op);
    found.own_ns = (delay ? base.delay_ns : base.dur_ns)[op - step.begin];
    found.others_ns = delay ? usual(op).second : usual(op).first;
    if (is_message(g_.kind[op])) {
      found.by = LongBy::kMessage;
      for (const uint32_t other : members_of(op))
        if (g_.stage(other) != found.stage) found.from_stage = g_.stage(other);
      for (const uint32_t on : g_.waits(op))
        if (found.from_stage == kUnknown && g_.stage(on) != found.stage) found.from_stage = g_.stage(on);
      const bool sends = g_.kind[op] == CellKind::kSendForward || g_.kind[op] == CellKind::kSendBackward;
      if (sends) std::swap(found.from_stage, found.stage);
      return;
    }
    if (!is_compute(g_.kind[op])) {
      found.by = LongBy::kTail;
      return;
    }
    if (!delay) {
      found.by = LongBy::kCell;
      return;
    }
    found.from_stage = messages_.sender_of(op);
    found.by = LongBy::kPause;
    if (found.from_stage == kUnknown) return;
    const std::optional<double> under_way = messages_.under_way_ns(op, excess);
    found.by = !under_way                            ? (messages_.any() ? LongBy::kPause : LongBy::kLate)
               : *under_way >= kMaxOfExcess * excess ? LongBy::kMessage
                                                     : LongBy::kPause;
  }

  // Returns whether the long messages of a link are one hang. Messages come one after another, and those behind one
  // that hangs end when it ends.
  //
  //     the first   ├──────────────────────┤            a slow link ends them one by one
  //     the next         ├──────────────────┤
  bool is_one_hang(const std::vector<uint32_t>& ops) const {
    constexpr double kSameEnd = 0.1;                 // of the longest message
    std::map<int32_t, std::array<int64_t, 2>> ends;  // for each replica, the first and the last end
    double longest = 0;
    for (const uint32_t op : ops) longest = std::max(longest, g_.dur_ns[op]);
    for (const uint32_t op : ops) {
      if (2 * g_.dur_ns[op] < longest) continue;  // a little late because of those before it
      auto& [first, last] = ends.try_emplace(g_.dp(op), std::array{INT64_MAX, INT64_MIN}).first->second;
      first = std::min(first, g_.ended_ns(op)), last = std::max(last, g_.ended_ns(op));
    }
    return std::all_of(ends.begin(), ends.end(), [&](const auto& entry) {
      return static_cast<double>(entry.second[1] - entry.second[0]) <= kSameEnd * longest;
    });
  }

  size_t replicas_of(const std::vector<uint32_t>& ops) const {
    std::set<int32_t> replicas;
    for (const uint32_t op : ops) replicas.insert(g_.dp(op));
    return replicas.size();
  }
  // Stages (from, to) of a message; kUnknown where the other one is not known.
  Link link_of(uint32_t op) const {
    int32_t other = kUnknown;
    for (const uint32_t member : members_of(op))
      if (g_.stage(member) != g_.stage(op)) other = g_.stage(member);
    for (const uint32_t on : g_.waits(op))
      if (other == kUnknown && g_.stage(on) != g_.stage(op)) other = g_.stage(on);
    const bool sends = g_.kind[op] == CellKind::kSendForward || g_.kind[op] == CellKind::kSendBackward;
    return sends ? Link{g_.stage(op), other} : Link{other, g_.stage(op)};
  }

  // Is used if there is no single operation. It looks for ranks that belong together and hold nearly all of the extra
  // time, the smallest such set first. Then it tries the messages of one link, then nearly all ranks.
  void by_ranks(const GraphStep& step, const OpTimes& base, double whole, const Excesses& excesses,
                LongStep& found) const {
    // Over many ranks, random differences add up; so a rank with little compared with the worst one does not count.
    double sum = 0, max_of_one = 0;
    for (const auto& [part, excess] : excesses.by_part) max_of_one = std::max(max_of_one, excess.excess_ns());
    for (const auto& [part, excess] : excesses.by_part)
      if (excess.excess_ns() >= kMinOfExcess * max_of_one) sum += excess.excess_ns();
    std::map<std::pair<LongBy, std::string>, std::vector<int32_t>> sets;
    for (const auto& [part, excess] : excesses.by_part) {
      const Part& p = scene_.trace.parts[part];
      const int32_t stage = g_.stage_of[part];
      sets[{LongBy::kRank, std::to_string(part)}].push_back(part);
      sets[{LongBy::kReplica, std::to_string(p.dp)}].push_back(part);
      sets[{LongBy::kStage, std::to_string(stage)}].push_back(part);
      sets[{LongBy::kMachine, p.machine_name}].push_back(part);
    }
    struct Choice {
      LongBy by = LongBy::kNothing;
      const std::vector<int32_t>* parts = nullptr;
      double held = 0;
    } choice;
    for (const auto& [key, parts] : sets) {
      if (key.first != LongBy::kRank && (parts.size() < 2 || parts.size() == excesses.by_part.size())) continue;
      if (key.first == LongBy::kMachine && key.second.empty()) continue;
      double held = 0, least = kInfinity, all = 0;
      for (const int32_t part : parts) {
        const double excess = excesses.by_part.at(part).excess_ns();
        held += excess, least = std::min(least, excess), all += 1;
      }
      // Each of the ranks must have its share; otherwise one of them, or another set, is the cause.
      if (held < kNearlyAll * sum || least < kMaxOfExcess * held / all) continue;
      if (!choice.parts || parts.size() < choice.parts->size()) choice = {key.first, &parts, held};
    }
    if (choice.parts && take_ranks(step, base, whole, excesses, *choice.parts, found)) {
      found.by = choice.by;
      return;
    }
    if (take_stages(step, base, whole, excesses, sum, found)) return;
    double most = 0;
    for (const auto& [link, ops] : excesses.by_link) {
      if (link.first == kUnknown || link.second == kUnknown) continue;
      OpTimes world = base;
      for (const uint32_t op : ops) world.dur_ns[op - step.begin] = usual(op).first;
      const double gain = whole - end_of(step, world);
      if (gain < kMaxOfExcess * found.excess_ns || gain <= most) continue;
      most = gain;
      found.by = LongBy::kLink;
      std::tie(found.from_stage, found.stage) = link;
      found.share = gain / found.excess_ns;
      found.count = ops.size();
      found.own_ns = found.others_ns = 0;
      for (const uint32_t op : ops) {
        found.own_ns += base.dur_ns[op - step.begin] / ops.size();
        found.others_ns += usual(op).first / ops.size();
      }
    }
    if (found.by == LongBy::kLink) {
      if (const auto& ops = excesses.by_link.at({found.from_stage, found.stage}); is_one_hang(ops)) {
        // Any message may take a little longer than the median one, so the first of those that hung is named.
        const auto longest = *std::max_element(ops.begin(), ops.end(),
                                               [&](uint32_t a, uint32_t b) { return g_.dur_ns[a] < g_.dur_ns[b]; });
        uint32_t first = longest;
        for (const uint32_t op : ops)
          if (2 * g_.dur_ns[op] >= g_.dur_ns[longest] && g_.start_ns[op] < g_.start_ns[first]) first = op;
        name(first, false, found.excess_ns, base, step, found);
        found.replicas = replicas_of(ops);
      }
      return;
    }
    if (take_late_starts(step, base, whole, excesses, sum, found)) return;
    std::vector<int32_t> long_ones;
    for (const auto& [part, excess] : excesses.by_part)
      if (excess.own_ns + excess.late_ns >= kLong * excess.usual_ns) long_ones.push_back(part);
    if (long_ones.size() < kNearlyAll * excesses.by_part.size()) return;
    if (take_ranks(step, base, whole, excesses, long_ones, found)) found.by = LongBy::kAll, found.stage = kUnknown;
  }

  // Tries several whole stages: those with at least half of the worst stage's excess. They must be at most half of all
  // stages and hold nearly all of the excess.
  bool take_stages(const GraphStep& step, const OpTimes& base, double whole, const Excesses& excesses, double sum,
                   LongStep& found) const {
    std::map<int32_t, std::pair<double, std::vector<int32_t>>> stages;
    double most = 0, held = 0;
    for (const auto& [part, excess] : excesses.by_part) {
      auto& [ns, parts] = stages[g_.stage_of[part]];
      most = std::max(most, ns += excess.excess_ns());
      parts.push_back(part);
    }
    std::vector<int32_t> parts;
    size_t taken = 0;
    for (const auto& [stage, own] : stages) {
      if (own.first < kMaxOfExcess * most || stage == kUnknown) continue;
      ++taken, held += own.first;
      parts.insert(parts.end(), own.second.begin(), own.second.end());
    }
    if (taken < 2 || 2 * taken > stages.size() || held < kNearlyAll * sum) return false;
    if (!take_ranks(step, base, whole, excesses, parts, found)) return false;
    found.by = LongBy::kStages;
    return true;
  }

  // Tries the step with all work started as usual; returns false, and says nothing, where late starts are not nearly
  // all of it.
  bool take_late_starts(const GraphStep& step, const OpTimes& base, double whole, const Excesses& excesses, double sum,
                        LongStep& found) const {
    double late = 0;
    for (const auto& [part, excess] : excesses.by_part) late += excess.late_ns;
    if (late < kNearlyAll * sum) return false;
    OpTimes world = base;
    int64_t count = 0;
    std::set<int32_t> parts;
    for (uint32_t op = step.begin; op < step.end; ++op) {
      if (scene_.times.worker_of(op) == CellTimes::kNone) continue;
      const auto [dur, delay] = usual(op);
      double& own = world.delay_ns[op - step.begin];
      if (own - delay >= kLateTime * dur) ++count, parts.insert(g_.part[op]);
      own = std::min(own, delay);
    }
    const double gain = whole - end_of(step, world);
    if (gain < kMaxOfExcess * found.excess_ns || count == 0) return false;
    found.by = LongBy::kHosts;
    found.share = gain / found.excess_ns;
    found.count = count;
    found.late_ns = late;
    found.parts.assign(parts.begin(), parts.end());
    return true;
  }

  // Tries the step with the usual times of these ranks; returns false, and adds nothing, when it is almost as long.
  bool take_ranks(const GraphStep& step, const OpTimes& base, double whole, const Excesses& excesses,
                  const std::vector<int32_t>& parts, LongStep& found) const {
    const std::set<int32_t> own(parts.begin(), parts.end());
    OpTimes world = base;
    for (uint32_t op = step.begin; op < step.end; ++op) {
      if (scene_.times.worker_of(op) == CellTimes::kNone || !own.contains(g_.part[op])) continue;
      const auto [dur, delay] = usual(op);
      double& d = world.dur_ns[op - step.begin];
      d = std::min(d, dur);
      world.delay_ns[op - step.begin] = std::min(world.delay_ns[op - step.begin], delay);
    }
    const double gain = whole - end_of(step, world);
    if (gain < kMaxOfExcess * found.excess_ns) return false;
    found.share = gain / found.excess_ns;
    found.parts = parts;
    found.part = parts.size() == 1 ? parts.front() : kUnknown;
    found.stage = g_.stage_of[parts.front()];
    for (const int32_t part : parts) {
      const PartExcess& excess = excesses.by_part.at(part);
      found.own_ns += excess.own_ns, found.others_ns += excess.usual_ns, found.late_ns += excess.late_ns;
    }
    return true;
  }

  const CauseScene& scene_;
  const StepGraph& g_;
  const OpWorld& world_;
  ReceivedMessages messages_;
  std::function<uint32_t(uint32_t)> key_;
  std::vector<double> usual_dur_, usual_delay_;
};

}  // namespace

void explain_long_steps(const CauseScene& scene, const OpWorld& world, const std::vector<size_t>& steps,
                        std::vector<LongStep>& out) {
  if (steps.empty()) return;
  const Finder finder(scene, world);
  for (size_t i = 0; i < steps.size(); ++i)
    if (i < kMaxSteps) finder.look_at(scene.graph.steps[steps[i]], out[i]);
}

}  // namespace stageline
