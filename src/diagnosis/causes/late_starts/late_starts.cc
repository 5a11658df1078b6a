// Late starts: work starts late on most ranks, and too often for pauses.
#include "diagnosis/causes/start_reasons.h"
#include "diagnosis/causes/telling.h"
#include "model/run_extent.h"

namespace stageline {
namespace {

struct LateStartsOwn {
  // Cells that wait only for their own rank are not late, so no host is the cause.
  bool hosts_prompt = false;
  bool messages_unknown = false;  // no messages were recorded, so these may be late as well
  int64_t ranks = 0;              // on how many ranks
  double worst_share = 0;         // share of the cells of the rank that has most late ones
  double open_share = 0;          // of the time by which they are late: their recorded receives have not ended
};

}  // namespace

// Suspects late starts other than pauses.
void suspect_late_starts(CauseScene& scene, std::vector<Suspect>& out) {
  const StartReasons& reasons = scene.measured<StartReasons>();
  const StartDelays& starts = reasons.starts;
  if (!reasons.everywhere) return;
  Suspect suspect;
  suspect.cause.kind = &late_starts_cause;
  LateStartsOwn own;
  own.messages_unknown = starts.hosts() == StartDelays::Hosts::kUndecided && !starts.messages().any();
  own.hosts_prompt = starts.hosts() == StartDelays::Hosts::kPrompt;
  CauseFigures& figures = suspect.cause.figures;
  figures.of = starts.cells();
  const double limit = starts.best_ns() + starts.late_ns(), above_ns = reasons.above_ns;
  for (uint32_t worker = 0; worker < starts.delays().keys(); ++worker) {
    const std::span<const double> delays = starts.delays().of(worker);
    if (delays.empty()) continue;
    int64_t count = 0;
    for (const double ns : delays) {
      if (ns <= limit || ns > above_ns) continue;
      ++count;
      figures.each_ns += ns - starts.best_ns();
    }
    figures.count += count;
    own.ranks += count > 0;
    const double share = count / static_cast<double>(delays.size());
    if (share <= own.worst_share) continue;
    own.worst_share = share;
    const Part& part = scene.trace.parts[scene.times.workers()[worker].part];
    figures.rank = part.rank, figures.stage = part.stage;
  }
  if (figures.count == 0) return;
  const LateStarts late = starts.sum_of(starts.ways());
  if (late.received > 0) own.open_share = share_or_zero(late.message_ns, late.ns);
  figures.each_ns /= figures.count;
  if (own.hosts_prompt) suspect.cause.places = {{.kind = PlaceKind::kLink}};
  else suspect.cause.places = {{.kind = PlaceKind::kHost}};
  if (own.messages_unknown) suspect.cause.or_else = {{.kind = PlaceKind::kLink}};
  suspect.cause.own = own;
  suspect.without = [&scene, limit, above_ns, best = starts.best_ns()](uint32_t op, double&, double& delay) {
    if (delay > limit && delay <= above_ns && scene.tells_delay(op)) delay = best;
  };
  out.push_back(std::move(suspect));
}

Telling tell_late_starts(std::span<const Cause* const> causes, const TellContext& context) {
  constexpr double kWorthSaying = 0.01;
  const Cause& c = *causes.front();
  const auto& own = c.own.as<LateStartsOwn>();
  Args args = context.args(c);
  args.set("ranks", grouped(own.ranks)).set("by", percent(own.worst_share));
  args.flag("guessed", own.messages_unknown).flag("hosts_alone", of_hosts_alone(context.trace));
  args.set("open", own.open_share >= kWorthSaying ? percent(own.open_share) : "");
  args.set("reason", words(own.hosts_prompt ? "host.late_starts.prompt" : "host.late_starts.either", args));
  Telling telling = say_cause("host.late_starts", "host.late_starts", args);
  telling.rank = c.figures.rank;
  if (own.messages_unknown) telling.key = "host messages";
  telling.table = {"theory", "late-reasons"};
  return telling;
}

}  // namespace stageline
