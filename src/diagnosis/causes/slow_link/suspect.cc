#include <algorithm>
#include <vector>

#include "diagnosis/causes/link_times.h"
#include "diagnosis/causes/send_delays.h"
#include "diagnosis/causes/slow_link/slow_link.h"
#include "diagnosis/causes/start_reasons.h"

namespace stageline {

extern const CauseKind slow_link_cause;

namespace {

// Where clocks were aligned by gaps, two directions whose times differ by a smaller share are one cause.
constexpr double kAlike = 0.25;

void add(Suspect suspect, SlowLinkOwn own, std::vector<Suspect>& out) {
  suspect.cause.kind = &slow_link_cause;
  suspect.cause.together = {"slow_link", Together::Role::kEqual};
  suspect.cause.figures.stage = suspect.cause.place().stage;
  suspect.cause.own = own;
  out.push_back(std::move(suspect));
}

// The scenario in which messages of a link take as long as those of the others; so do sends that a rank waits for.
CauseWorld as_quick_as_others(const CauseScene& scene, const SlowTransfer& link) {
  const LinkTimes& links = scene.measured<LinkTimes>();
  return
      [edges = links.all.edge_of, factors = link.factors, max_ns = links.all.max_ns, held = links.held_up(scene, link),
       &g = scene.graph, &sends = scene.measured<LateSends>()](uint32_t op, double& dur, double& delay) {
        if (const auto own = held.find(op); own != held.end()) delay = std::max(0.0, delay - own->second);
        const uint32_t edge = (*edges)[op];
        const auto it = edge == CellTimes::kNone ? factors.end() : factors.find(edge);
        if (it == factors.end()) return;
        const double known_ns = std::min({dur, sends.transfer_ns(g, op), kMaxOfUsual * max_ns[edge]});
        dur -= known_ns * (1 - it->second);
      };
}

// Clocks that were aligned by the gaps of both directions share out to both what one of them takes longer.
bool share_out_gaps(const CauseScene& scene) {
  return !scene.measured<LinkTimes>().all.recorded && scene.trace.alignment == AlignState::kMapped;
}

// Messages that were not recorded last until the cells start that wait for them, at most as long as is usual on their
// link. If that usual time is long too, it is the rest of the time by which these cells are late.
bool is_rest_of(const CauseScene& scene, const SlowTransfer& slow, const LateLink& late) {
  if (late.tail || scene.measured<LinkTimes>().all.recorded) return false;
  const WorkerWay way = late.ways.front();
  const StagePair link{scene.measured<StartReasons>().starts.sender_of(way), scene.times.workers()[way.first].stage};
  return slow.link == link || (share_out_gaps(scene) && slow.link == StagePair{link.second, link.first});
}

// The hosts that may be late instead of the messages that they wait for, where these were not recorded.
Place receivers(const CauseScene& scene, const Place& link) {
  Place hosts{.kind = PlaceKind::kHost};
  for (const CellTimes::Worker& worker : scene.times.workers())
    if ((worker.stage == link.stage || (link.both_ways && worker.stage == link.from_stage)) &&
        (link.replica == kUnknown || worker.dp == link.replica))
      hosts.ranks.push_back(scene.trace.parts[worker.part].rank);
  return hosts;
}

// By the cells that wait for its messages.
void suspect_by_starts(const CauseScene& scene, std::vector<Suspect>& out) {
  const StartReasons& reasons = scene.measured<StartReasons>();
  const StartDelays& starts = reasons.starts;
  for (const LateLink& link : reasons.links) {
    if (link.tail) continue;
    Suspect suspect = suspect_of(starts, link);
    Cause& cause = suspect.cause;
    const LateStarts late = starts.sum_of(link.ways);
    int64_t whole = 0;
    for (const StartDelays::StepLate& step : starts.late_by_step(worst_way(starts, link))) {
      const bool slow = step.of > 0 && step.count >= kWholeStep * step.of;
      cause.in_steps.count += slow;
      whole += slow && step.count >= kMinLateCells;
      cause.in_steps.all += step.of > 0;
    }
    for (const SlowTransfer& slow : scene.measured<LinkTimes>().slow)
      if (is_rest_of(scene, slow, link)) suspect.without = both(suspect.without, as_quick_as_others(scene, slow));
    const bool unrecorded = !starts.messages().any();
    if (unrecorded) cause.or_else = {receivers(scene, cause.place())};
    // In steps in which it is slow, how much that costs may differ; that it is slow is certain.
    cause.certain = cause.in_steps.count < cause.in_steps.all && (late.count >= kMinCertain || whole >= kMinWholeSteps);
    add(std::move(suspect), {.own_ns = late.ns / late.count, .unrecorded = unrecorded}, out);
  }
}

// Suspects links by recorded messages that are late, in whole steps, compared with fast ones of the same link.
void suspect_by_late_messages(const CauseScene& scene, std::vector<Suspect>& out) {
  for (const LateTransfer& late : scene.measured<LinkTimes>().late) {
    if (!late.slow) continue;
    Suspect suspect;
    Cause& cause = suspect.cause;
    const Part* part = late.part == kUnknown ? nullptr : &scene.trace.parts[late.part];
    cause.places = {place_of(late.link, late.dp)};
    cause.figures = {.each_ns = late.each_ns, .count = late.count, .of = late.of};
    if (part) cause.figures.rank = part->rank;
    cause.in_steps = {late.whole_steps, late.steps};
    cause.sometimes = late.shaped;
    cause.certain = late.certain;
    suspect.without = late.without;
    add(std::move(suspect), {.own_ns = late.own_ns, .others_ns = late.others_ns}, out);
  }
}

// Suspects links by their median compared with the other links.
void suspect_by_median(const CauseScene& scene, std::vector<Suspect>& out) {
  const LinkTimes& links = scene.measured<LinkTimes>();
  std::vector<SlowTransfer> found = links.slow;
  const std::vector<LateLink>& late = scene.measured<StartReasons>().links;
  const bool by_gaps = share_out_gaps(scene);
  size_t kept = 0;
  for (size_t i = 0; i < found.size() && kept < kMaxWorkerCauses; ++i) {
    SlowTransfer& link = found[i];
    if (link.factors.empty()) continue;  // reported together with its other direction
    if (std::ranges::any_of(late, [&](const LateLink& one) { return is_rest_of(scene, link, one); })) continue;
    Suspect suspect;
    Place place = place_of(link.link, link.dp);
    for (size_t j = i + 1; by_gaps && j < found.size(); ++j) {
      SlowTransfer& back = found[j];
      if (back.link != StagePair{link.link.second, link.link.first} || back.dp != link.dp ||
          back.own_ns < (1 - kAlike) * link.own_ns)
        continue;
      link.factors.merge(back.factors);
      back.factors.clear();
      place.both_ways = true;
    }
    if (place.both_ways && place.from_stage > place.stage) std::swap(place.from_stage, place.stage);
    if (!links.all.recorded) suspect.cause.or_else = {receivers(scene, place)};
    suspect.cause.places = {place};
    suspect.cause.figures.ratio = link.others_ns > 0 ? link.own_ns / link.others_ns : 0;
    suspect.cause.certain = links.slow_in_nearly_every_step(scene, link);
    suspect.without = as_quick_as_others(scene, link);
    add(std::move(suspect), {.own_ns = link.own_ns, .others_ns = link.others_ns, .unrecorded = !links.all.recorded},
        out);
    ++kept;
  }
}

void suspect_slow_links(CauseScene& scene, std::vector<Suspect>& out) {
  suspect_by_starts(scene, out);
  suspect_by_late_messages(scene, out);
  // With forwards alone, gaps between them may be unrecorded backwards.
  const std::vector<CellKind>& kinds = scene.graph.kind;
  if (scene.measured<LinkTimes>().all.recorded || std::ranges::any_of(kinds, is_backward))
    suspect_by_median(scene, out);
}

constexpr std::string_view kLines[] = {"message"};

}  // namespace

const CauseKind slow_link_cause = {.id = "slow_link",
                                   .name = "slow link",
                                   .takes_from = kLines,
                                   .of_links = true,
                                   .suspect = suspect_slow_links,
                                   .tell = tell_slow_link};

}  // namespace stageline
