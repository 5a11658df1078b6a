#include "diagnosis/causes/long_steps.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/stage_costs.h"
#include "pipeline/measure/op_values.h"

namespace stageline {
namespace {

constexpr size_t kMostSuspects = 12;    // operations, and ranks, that are tried by themselves
constexpr double kLeastOfExcess = 0.1;  // of a step's excess, that an operation must have itself to be tried
constexpr double kMostOfExcess = 0.5;   // of the excess, that goes with what is named
constexpr size_t kMostSteps = 16;       // long steps that are looked into

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
      uint32_t op;
      bool delay;
    };
    std::vector<Suspect> suspects;
    std::map<int32_t, double> by_part;
    for (size_t i = 0; i < n; ++i) {
      const auto op = step.begin + static_cast<uint32_t>(i);
      const auto [dur, delay] = usual(op);
      for (const bool is_delay : {false, true}) {
        const double excess = is_delay ? base.delay_ns[i] - delay : base.dur_ns[i] - dur;
        if (!(excess > 0)) continue;
        if (scene_.times.worker_of(op) != CellTimes::kNone) by_part[g_.part[op]] += excess;
        if (excess >= kLeastOfExcess * found.excess_ns) suspects.push_back({excess, op, is_delay});
      }
    }
    std::stable_sort(suspects.begin(), suspects.end(),
                     [](const Suspect& a, const Suspect& b) { return a.excess > b.excess; });
    if (suspects.size() > kMostSuspects) suspects.resize(kMostSuspects);
    const Suspect* best = nullptr;
    double most = 0;
    for (const Suspect& s : suspects) {
      OpTimes world = base;
      const auto [dur, delay] = usual(s.op);
      const std::vector<uint32_t> members = members_of(s.op);
      for (const uint32_t op : members)
        (s.delay ? world.delay_ns : world.dur_ns)[op - step.begin] = s.delay ? delay : dur;
      const double gain = whole - end_of(step, world);
      if (gain <= most) continue;
      most = gain, best = &s;
    }
    if (best && most >= kMostOfExcess * found.excess_ns) {
      name(best->op, best->delay, best->excess, base, step, found);
      found.share = most / found.excess_ns;
      return;
    }
    by_rank(step, base, whole, by_part, found);
  }

 private:
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
  // A send and its receive take the same time.
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
    found.by = !under_way                             ? (messages_.any() ? LongBy::kPause : LongBy::kLate)
               : *under_way >= kMostOfExcess * excess ? LongBy::kMessage
                                                      : LongBy::kPause;
  }

  void by_rank(const GraphStep& step, const OpTimes& base, double whole, const std::map<int32_t, double>& by_part,
               LongStep& found) const {
    const auto without = [&](int32_t part) {  // kUnknown: all of them, and what is no compute too
      OpTimes world = base;
      double own = 0, theirs = 0;
      for (uint32_t op = step.begin; op < step.end; ++op) {
        if (part != kUnknown && (g_.part[op] != part || scene_.times.worker_of(op) == CellTimes::kNone)) continue;
        const auto [dur, delay] = usual(op);
        double& d = world.dur_ns[op - step.begin];
        if (scene_.times.worker_of(op) != CellTimes::kNone) own += d, theirs += dur;
        d = std::min(d, dur);
        world.delay_ns[op - step.begin] = std::min(world.delay_ns[op - step.begin], delay);
      }
      return std::tuple(whole - end_of(step, world), own, theirs);
    };
    std::vector<std::pair<double, int32_t>> parts;
    for (const auto& [part, excess] : by_part) parts.emplace_back(-excess, part);
    std::sort(parts.begin(), parts.end());
    if (parts.size() > kMostSuspects) parts.resize(kMostSuspects);
    double most = 0, second = 0;
    int32_t best = kUnknown;
    for (const auto& [excess, part] : parts) {
      const double gain = std::get<0>(without(part));
      if (gain > most)
        second = most, most = gain, best = part;
      else
        second = std::max(second, gain);
    }
    const bool one = best != kUnknown && most >= kMostOfExcess * found.excess_ns && second < most / 2;
    const auto [gain, own, theirs] = without(one ? best : kUnknown);
    if (gain < kMostOfExcess * found.excess_ns) return;
    found.by = one ? LongBy::kRank : LongBy::kAll;
    found.part = one ? best : kUnknown;
    if (one) found.stage = g_.stage_of[static_cast<size_t>(best)];
    found.own_ns = own, found.others_ns = theirs;
    found.share = gain / found.excess_ns;
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
    if (i < kMostSteps) finder.look_at(scene.graph.steps[steps[i]], out[i]);
}

}  // namespace stageline
