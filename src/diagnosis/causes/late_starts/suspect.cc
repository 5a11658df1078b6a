#include "diagnosis/causes/late_starts/late_starts.h"
#include "diagnosis/causes/start_reasons.h"

namespace stageline {

extern const CauseKind late_starts_cause;

namespace {

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
  const double limit = starts.best_ns() + kLateStart * starts.cell_ns(), above_ns = reasons.above_ns;
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
  if (own.hosts_prompt)
    suspect.cause.places = {{.kind = PlaceKind::kLink}};
  else
    suspect.cause.places = {{.kind = PlaceKind::kHost}};
  if (own.messages_unknown) suspect.cause.or_else = {{.kind = PlaceKind::kLink}};
  suspect.cause.own = own;
  suspect.without = [&scene, limit, above_ns, best = starts.best_ns()](uint32_t op, double&, double& delay) {
    if (delay > limit && delay <= above_ns && scene.tells_delay(op)) delay = best;
  };
  out.push_back(std::move(suspect));
}

constexpr std::string_view kLines[] = {"late", "replica-jitter"};

}  // namespace

const CauseKind late_starts_cause = {.id = "late_starts",
                                     .name = "late starts",
                                     .measured = Measured::kCounted,
                                     .takes_from = kLines,
                                     .suspect = suspect_late_starts,
                                     .tell = tell_late_starts};

}  // namespace stageline
