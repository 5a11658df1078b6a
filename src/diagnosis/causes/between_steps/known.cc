#include "diagnosis/causes/between_steps/between_steps.h"
#include "diagnosis/causes/gap_times.h"
#include "diagnosis/causes/suspect.h"

namespace stageline {

extern const CauseKind between_steps_cause;

namespace {

// Share of a period; a usual gap that is shorter is only a line of the breakdown.
constexpr double kMinGap = 0.02;

// A gap that has no name and is shorter than a cell belongs to every training loop. As much of a longer gap may belong
// to it too.
void known_gaps(const KnownFacts& facts, std::vector<Cause>& out) {
  const std::vector<CellKind>& kinds = facts.graph.kind;
  const bool optimizers = std::ranges::find(kinds, CellKind::kOptimizer) != kinds.end();
  for (GapTime& gap : gap_times(facts.periods)) {
    Cause cause{.kind = &between_steps_cause, .sometimes = gap.sometimes, .certain = true};
    std::vector<double> by_step(facts.step_numbers.size(), kNaN);
    for (size_t i = 0; i < by_step.size(); ++i)
      if (const auto at = gap.by_step.find(facts.step_numbers[i]); at != gap.by_step.end()) by_step[i] = at->second;
    cause.lost_course = when_lost(cause, by_step);
    Place place{.kind = PlaceKind::kBetweenSteps, .name = gap.name};
    if (gap.part != kUnknown) {
      const Part& part = facts.trace.parts[gap.part];
      place.ranks = {part.rank};
      cause.figures.rank = part.rank, cause.figures.stage = part.stage;
    }
    cause.places = {std::move(place)};
    cause.figures.each_ns = gap.each_ns;
    cause.figures.count = gap.steps.size();
    cause.figures.of = facts.periods.gaps.size();
    cause.price.lost_ns = gap.mean_ns;
    if (!gap.sometimes && gap.name.empty()) cause.price.open_ns = facts.shortest_ns;
    // The time of only a few gaps is not part of a usual step: a gap of 20 minutes would be thousands of per cent of
    // it.
    if (gap.sometimes) cause.price.base = PriceBase::kPeriod;
    cause.price.outside = gap.sometimes && !facts.periods.long_gaps.empty();
    cause.own = BetweenStepsOwn{std::move(gap.steps), !gap.sometimes && !optimizers && gap.name.empty()};
    out.push_back(std::move(cause));
  }
}

CauseUse judge_gap(Cause& cause, const JudgeFacts& facts) {
  if (cause.sometimes) return CauseUse::kCause;
  const double usual_ns = facts.periods.usual_ns;
  const bool short_one = cause.place().name.empty() && usual_ns < facts.shortest_ns;
  const double min = cause.own.as<BetweenStepsOwn>().may_be_optimizer ? kMinTail : kMinGap;
  return short_one || facts.coverage.replicas_unread() > 0 || usual_ns < min * facts.step_ns ? CauseUse::kLine
                                                                                             : CauseUse::kCause;
}

constexpr std::string_view kLines[] = {"between"};

}  // namespace

const CauseKind between_steps_cause = {.id = "between_steps",
                                       .name = "time between steps",
                                       .measured = Measured::kRecorded,
                                       .takes_from = kLines,
                                       .judge = judge_gap,
                                       .known = known_gaps,
                                       .tell = tell_between_steps};

}  // namespace stageline
