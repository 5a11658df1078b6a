// Slow link: messages from one stage to another take longer than on the other links, always or in some steps.
#include "diagnosis/causes/link_times.h"
#include "diagnosis/causes/start_reasons.h"
#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

struct SlowLinkOwn {
  double own_ns = 0, others_ns = 0;  // mean time of its messages and of those of other links; others 0: unknown
  bool unrecorded = false;           // its messages were not recorded: work that starts late shows them
};

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

// Returns whether half of the mean delay of a link's late cells is above their own scatter.
bool late_alike(const StartDelays& starts, const LateLink& link, const LateStarts& late) {
  std::vector<double> delays;
  starts.scene().each_op([&, by = starts.excess()](uint32_t op, size_t) {
    if (std::ranges::find(link.ways, way_at(starts.scene(), op)) == link.ways.end()) return;
    if (const double ns = by(op); ns > 0) delays.push_back(ns);
  });
  return beyond_noise(late.ns / late.count / 2, sample_std(delays) / std::sqrt(late.count), late.count);
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
      if (is_rest_of(scene, slow, link))
        for (CauseWorld* world : {&suspect.without, &suspect.otherwise})
          *world = both(*world, as_quick_as_others(scene, slow));
    const bool unrecorded = !starts.messages().any();
    if (unrecorded) cause.or_else = {receivers(scene, cause.place())};
    // In steps in which it is slow, how much that costs may differ; that it is slow is certain.
    cause.certain = cause.in_steps.count < cause.in_steps.all && (late.count >= kMinCertain || whole >= kMinWholeSteps);
    // Where few steps say nothing, the cells do if most are late, by about the same.
    if (few_steps(scene) && late.count >= kWholeStep * late.of) cause.certain |= late_alike(starts, link, late);
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

Args args_of(const Cause& c, const TellContext& context) {
  const auto& own = c.own.as<SlowLinkOwn>();
  Args args = context.args(c);
  args.set("own", human_duration(own.own_ns)).set("others", own.others_ns > 0 ? human_duration(own.others_ns) : "");
  args.flag("unrecorded", own.unrecorded);
  args.set("known", words(own.unrecorded ? "link.slow.unrecorded" : "link.slow.recorded"));
  args.set("compared", words(c.sometimes         ? "link.slow.compared.steps"
                             : own.others_ns > 0 ? "link.slow.compared.links"
                                                 : "link.slow.compared.longer",
                             args));
  return args.flag("part_of_steps", c.in_steps.count > 0 && c.in_steps.count < c.in_steps.all);
}

// Returns whether the slow links are all links between neighbouring stages in one direction.
bool is_one_direction(std::span<const Cause* const> all, const TellContext& context) {
  if (context.stages < 3 || all.size() + 1 != static_cast<size_t>(context.stages)) return false;
  const int32_t way = all.front()->place().from_stage < all.front()->place().stage ? 1 : -1;
  return std::ranges::all_of(all, [&](const Cause* c) {
    const Place& place = c->place();
    return !place.both_ways && place.replica == kUnknown && place.stage - place.from_stage == way;
  });
}

}  // namespace

void suspect_slow_link(CauseScene& scene, std::vector<Suspect>& out) {
  suspect_by_starts(scene, out);
  suspect_by_late_messages(scene, out);
  // With forwards alone, gaps between them may be unrecorded backwards.
  const std::vector<CellKind>& kinds = scene.graph.kind;
  if (scene.measured<LinkTimes>().all.recorded || std::ranges::any_of(kinds, is_backward))
    suspect_by_median(scene, out);
}

Telling tell_slow_link(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  Args args = args_of(c, context);
  Telling telling = say_cause("link.slow", "link.slow", args);
  if (c.own.as<SlowLinkOwn>().unrecorded) telling.title = words("link.slow.inferred.title", args);
  if (is_one_direction(causes, context) && !c.lost_course.varies()) {
    const bool forward = c.place().from_stage < c.place().stage;
    telling.title = words(forward ? "link.slow.forward.title" : "link.slow.backward.title", args);
    telling.detail = words("link.slow.direction.detail", args);
  }
  for (const Cause* further : causes.subspan(1)) telling.more += words("link.slow.further", args_of(*further, context));
  if (causes.size() > 1 && c.price.joint_ns > 0) {
    Args joint;
    joint.set("joint", context.share(c.price.joint_ns)).set("alone", context.share(c.price.lost_ns));
    telling.more += words("link.slow.joint", joint);
  }
  telling.more += c.price.fix.words;
  telling.table = {"links", ""};
  return telling;
}

}  // namespace stageline
