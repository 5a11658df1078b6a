// Links whose messages come late, by the cells that wait for them: in every step, in whole steps, or now and then.
#include <algorithm>
#include <cmath>

#include "diagnosis/causes/start_delays.h"

namespace stageline {
namespace {

// Least share of late cells of one direction of a worker from which its message is at fault.
constexpr double kMaxOneWay = 0.3;
// Share of the delays of one direction during which their messages must have been under way.
constexpr double kByMessage = 0.8;
constexpr double kChanceOneWay = 0.01;  // most chance that a host's pauses would all hit cells of one direction

// The directions that wait for the same link, by receiving stage and forward.
using Links = std::map<std::pair<int32_t, bool>, std::vector<WorkerWay>>;
std::pair<int32_t, bool> link_of(const CauseScene& scene, const WorkerWay& key) {
  return {scene.times.workers()[key.first].stage, key.second};
}

std::vector<WorkerWay> other_ways(std::vector<WorkerWay> keys) {
  for (WorkerWay& key : keys) key.second = !key.second;
  return keys;
}

class LateLinks {
 public:
  explicit LateLinks(const StartDelays& starts) : starts_(starts), scene_(starts.scene()), g_(scene_.graph) {}

  std::set<WorkerWay> draft(std::vector<CauseDraft>& out) const {
    std::set<WorkerWay> linked;
    std::vector<WorkerWay> left;
    size_t reported = 0;
    // A link is slow in all replicas or in one; workers that wait for the same link are one cause.
    Links slow_links;
    for (const WorkerWay& key : starts_.ways()) {
      const LateStarts& late = starts_.late_at(key);
      if (late.count == 0) continue;
      if (is_message_late(key, late) || is_message_late_in_whole_steps(key, late))
        slow_links[link_of(scene_, key)].push_back(key);
      else
        left.push_back(key);
    }
    for (auto& [link, keys] : slow_links) {
      for (const WorkerWay& key : left)
        if (link_of(scene_, key) == link && starts_.late_at(key).count >= kMinLateCells) keys.push_back(key);
      linked.insert(keys.begin(), keys.end());
      if (++reported <= kMaxWorkerCauses) draft_link(keys, false, out);
    }
    std::erase_if(left, [&](const WorkerWay& key) { return linked.contains(key); });
    // Links whose messages are late now and then are looked for over all replicas, because one replica shows too few.
    Links links;
    for (const WorkerWay& key : left) links[link_of(scene_, key)].push_back(key);
    const auto tries = static_cast<double>(std::count_if(links.begin(), links.end(), [&](const auto& entry) {
      return starts_.sum_of(entry.second).count >= kMinLateCells;
    }));
    for (const auto& [link, keys] : links) {
      if (!is_message_tail(keys, tries)) continue;
      linked.insert(keys.begin(), keys.end());
      if (++reported <= kMaxWorkerCauses) draft_link(keys, !comes_by_steps(keys), out);
    }
    // Where hosts are prompt, a link's messages are at fault even if the tests above did not find it, as where both
    // directions of a link are late now and then, or always the same places.
    if (starts_.hosts() == StartDelays::Hosts::kPrompt && !starts_.messages().any())
      for (const auto& [link, keys] : links) {
        if (linked.contains(keys.front()) || starts_.sum_of(keys).count < kMinCertain ||
            starts_.sender_of(keys.front()) == kUnknown)
          continue;
        // A rank whose cells are late whatever they wait for is at fault itself, even if other ranks' hosts are prompt.
        if (5 * starts_.sum_of(other_ways(keys)).count > starts_.sum_of(keys).count) continue;
        linked.insert(keys.begin(), keys.end());
        if (++reported <= kMaxWorkerCauses) draft_link(keys, false, out);
      }
    return linked;
  }

 private:
  // Whether cells are late in one direction only, and often: then the message is late, where nobody recorded it.
  bool is_message_late(const WorkerWay& key, const LateStarts& late) const {
    if (g_.source != GraphSource::kComputeCells || g_.messages_recorded) return false;
    const LateStarts& other = starts_.late_at({key.first, !key.second});
    if (other.count * 5 > other.of || late.count < kMinLateCells || starts_.sender_of(key) == kUnknown ||
        static_cast<double>(late.count) < kMaxOneWay * static_cast<double>(late.of))
      return false;
    // Where there are few micro-batches, the first one alone may be that many cells; a slow link delays all
    // micro-batches alike.
    const StartDelays::Places places = starts_.places_of({key});
    return static_cast<double>(places.late.size()) >= kWholeStep * static_cast<double>(places.all.size());
  }

  // Whether the link is slow in some steps: most cells are late in these, and hardly any in others, though not many
  // over the run. Single late messages would come in any step.
  bool is_message_late_in_whole_steps(const WorkerWay& key, const LateStarts& late) const {
    if (g_.source != GraphSource::kComputeCells || late.count < kMinLateCells) return false;
    if (starts_.sender_of(key) == kUnknown) return false;
    const LateStarts& other = starts_.late_at({key.first, !key.second});
    if (5 * other.count > late.count) return false;  // the host stops, whatever comes
    if (starts_.messages().any() && late.received > 0 && late.message_ns < kByMessage * late.ns) return false;
    int64_t in_whole = 0, whole = 0;
    for (const StartDelays::StepLate& step : starts_.late_by_step(key)) {
      if (step.count < kMinLateCells || static_cast<double>(step.count) < kWholeStep * static_cast<double>(step.of))
        continue;
      in_whole += step.count, ++whole;
    }
    return whole > 0 && static_cast<double>(in_whole) >= kEverywhere * static_cast<double>(late.count);
  }

  // Whether late cells come from a step on, or in every n-th step, and hardly ever in others; chance does not choose
  // steps.
  bool comes_by_steps(const std::vector<WorkerWay>& keys) const {
    std::vector<double> counts(g_.steps.size(), 0);
    for (const WorkerWay& key : keys) {
      const std::vector<StartDelays::StepLate> steps = starts_.late_by_step(key);
      for (size_t s = 0; s < steps.size(); ++s) counts[s] += static_cast<double>(steps[s].count);
    }
    for (size_t s = 0; s < counts.size(); ++s)
      if (!scene_.counts[s]) counts[s] = kNaN;
    const Course course = course_of(counts);
    const auto [low, high] = std::minmax(course.low, course.high);
    return (course.kind == CourseKind::kOnset || course.kind == CourseKind::kEvery) && low <= kNextToNothing * high;
  }

  // Whether the message is what is late now and then: its recorded receive was under way; or, where nobody recorded
  // messages, only cells of its direction are late, which pauses of a host would hardly do. `tries` is the number of
  // links that are tested.
  bool is_message_tail(const std::vector<WorkerWay>& keys, double tries) const {
    const LateStarts late = starts_.sum_of(keys);
    if (g_.source != GraphSource::kComputeCells || late.count < kMinLateCells) return false;
    if (starts_.sender_of(keys.front()) == kUnknown) return false;
    // What is late at the same places of every step is caused by the order of work or the loop; a link knows no places.
    const StartDelays::Places places = starts_.places_of(keys);
    const auto steps = std::count(scene_.counts.begin(), scene_.counts.end(), true);
    if (2 * late.count >= steps * static_cast<int64_t>(places.late.size())) return false;
    if (starts_.messages().any()) return late.received > 0 && late.message_ns >= kByMessage * late.ns;
    const LateStarts other = starts_.sum_of(other_ways(keys));
    if (late.of == 0 || other.of == 0) return false;
    // The chance that at least this many of all late cells are of this direction, by a binomial distribution.
    const double own = static_cast<double>(late.of) / static_cast<double>(late.of + other.of);
    const int64_t all = late.count + other.count;
    double chance = 0;
    for (int64_t k = late.count; k <= all; ++k) {
      const auto n = static_cast<double>(all), x = static_cast<double>(k);
      chance += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(own) +
                         (n - x) * std::log1p(-own));
    }
    return chance * tries < kChanceOneWay;
  }

  // Drafts the link whose messages cells of these directions wait for: the same two stages, in one replica or in
  // several.
  void draft_link(const std::vector<WorkerWay>& keys, bool tail, std::vector<CauseDraft>& out) const {
    const LateStarts late = starts_.sum_of(keys);
    WorkerWay worst = keys.front();
    for (const WorkerWay& key : keys)
      if (starts_.late_at(key).ns > starts_.late_at(worst).ns) worst = key;
    const CellTimes::Worker& worker = scene_.times.workers()[worst.first];
    CauseDraft link;
    link.cause.kind = tail ? CauseKind::kMessageTail : CauseKind::kSlowLink;
    link.cause.guessed = tail && !starts_.messages().any();
    if (tail) {
      link.cause.count = late.count;
      link.cause.of = late.of;
      link.cause.part = worker.part;
      link.cause.pause_ns = late.ns / static_cast<double>(late.count);
      std::vector<double> lengths;
      const std::set<WorkerWay> ways(keys.begin(), keys.end());
      scene_.each_op([&, by = starts_.excess()](uint32_t op, size_t) {
        if (!ways.contains(way_at(scene_, op))) return;
        if (const double ns = by(op); ns > 0) lengths.push_back(ns);
      });
      link.cause.lengths = LateLengths(lengths);
    }
    link.cause.from_stage = starts_.sender_of(worst);
    link.cause.stage = worker.stage;
    if (g_.dp_count > 1 && keys.size() == 1) link.cause.dp = worker.dp;
    link.cause.times = {{CellKind::kOther, late.ns / static_cast<double>(late.count), 0}};
    if (!tail) {
      int64_t whole = 0;
      for (const StartDelays::StepLate& step : starts_.late_by_step(worst)) {
        const bool slow = step.of > 0 && static_cast<double>(step.count) >= kWholeStep * static_cast<double>(step.of);
        link.cause.slowest_in += slow;
        whole += slow && step.count >= kMinLateCells;
        link.cause.steps += step.of > 0;
      }
      // In steps in which it is slow, how much that costs may differ; that it is slow is certain.
      link.cause.certain =
          link.cause.slowest_in < link.cause.steps && (late.count >= kMinCertain || whole >= kMinWholeSteps);
    }
    link.without = [excess = starts_.excess(), ways = std::set<WorkerWay>(keys.begin(), keys.end()), &scene = scene_](
                       uint32_t op, double&, double& delay) {
      if (ways.contains(way_at(scene, op))) delay -= excess(op);
    };
    out.push_back(std::move(link));
  }

  const StartDelays& starts_;
  const CauseScene& scene_;
  const StepGraph& g_;
};

}  // namespace

bool few_links_are_late(const StartDelays& starts) {
  if (starts.scene().times.stages() == 2) return true;
  Links links;
  for (const WorkerWay& key : starts.ways())
    if (starts.sender_of(key) != kUnknown) links[link_of(starts.scene(), key)].push_back(key);
  const auto late = std::count_if(links.begin(), links.end(), [&](const auto& entry) {
    const LateStarts sum = starts.sum_of(entry.second);
    return static_cast<double>(sum.count) >= kRareLate * static_cast<double>(sum.of);
  });
  return 2 * late <= static_cast<int64_t>(links.size());
}

std::set<WorkerWay> draft_late_links(const StartDelays& starts, std::vector<CauseDraft>& out) {
  return LateLinks(starts).draft(out);
}

}  // namespace stageline
