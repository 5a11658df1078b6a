// Late messages: in some steps a message of a link takes far longer than its others, as with lost packets.
#include "diagnosis/causes/link_times.h"
#include "diagnosis/causes/start_reasons.h"
#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

void name_rank(const Part& part, Cause& cause) { cause.figures.rank = part.rank, cause.figures.stage = part.stage; }

// By the cells that wait for its messages.
void suspect_by_starts(const CauseScene& scene, std::vector<Suspect>& out) {
  const StartReasons& reasons = scene.measured<StartReasons>();
  const StartDelays& starts = reasons.starts;
  for (const LateLink& link : reasons.links) {
    if (!link.tail) continue;
    Suspect suspect = suspect_of(starts, link);
    Cause& cause = suspect.cause;
    cause.kind = &late_messages_cause;
    const LateStarts late = starts.sum_of(link.ways);
    cause.figures = {.each_ns = late.ns / late.count, .count = late.count, .of = late.of};
    name_rank(scene.trace.parts[scene.times.workers()[worst_way(starts, link).first].part], cause);
    // Messages were not recorded, so the host may be late as well.
    if (!starts.messages().any()) cause.or_else = {{.kind = PlaceKind::kHost, .ranks = {cause.figures.rank}}};
    std::vector<double> lengths;
    const std::set<WorkerWay> ways(link.ways.begin(), link.ways.end());
    scene.each_op([&, by = starts.excess()](uint32_t op, size_t) {
      if (!ways.contains(way_at(scene, op))) return;
      if (const double ns = by(op); ns > 0) lengths.push_back(ns);
    });
    cause.events = LateLengths(lengths);
    out.push_back(std::move(suspect));
  }
}

// Suspects links by recorded messages that are late compared with others of the same link.
void suspect_by_transfers(const CauseScene& scene, std::vector<Suspect>& out) {
  for (const LateTransfer& late : scene.measured<LinkTimes>().late) {
    if (late.slow) continue;
    Suspect suspect;
    Cause& cause = suspect.cause;
    cause.kind = &late_messages_cause;
    cause.places = {place_of(late.link, kUnknown)};
    cause.figures = {.each_ns = late.each_ns, .count = late.count, .of = late.of};
    name_rank(scene.trace.parts[late.part], cause);
    cause.events = late.lengths;
    suspect.without = late.without;
    out.push_back(std::move(suspect));
  }
}

}  // namespace

void suspect_late_messages(CauseScene& scene, std::vector<Suspect>& out) {
  suspect_by_starts(scene, out);
  suspect_by_transfers(scene, out);
}

Telling tell_late_messages(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  Args args = context.args(c);
  const bool guessed = !c.or_else.empty();
  Telling telling = say_cause("message.tail", "message.tail", args.flag("guessed", guessed));
  if (guessed) telling.title = words("message.tail.guessed.title", args);
  telling.rank = c.figures.rank;
  telling.table = {"links", ""};
  return telling;
}

}  // namespace stageline
