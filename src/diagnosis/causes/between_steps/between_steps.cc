// Time between steps: an unexplained gap, or a phase that has a name, before every step or before some.
#include "diagnosis/causes/gap_times.h"
#include "diagnosis/causes/telling.h"
#include "model/row_names.h"

namespace stageline {
namespace {

struct BetweenStepsOwn {
  std::vector<int32_t> at_steps = {};  // the steps after the gaps
  bool may_be_optimizer = false;       // no optimizer was recorded, so it may be part of that time
};

// Share of a period; a usual gap that is shorter is only a line of the breakdown.
constexpr double kMinGap = 0.02;

// The mean gap without long ones, and without what those of a pattern have beyond the others.
double usual_gap_ns(const StepPeriods& periods) {
  double beyond_ns = 0;
  for (size_t i = 0; i < periods.gaps.size(); ++i)
    if (!periods.is_long(i)) beyond_ns += periods.beyond_ns(i);
  const auto count = static_cast<double>(periods.gaps.size() - periods.long_gaps.size());
  return count > 0 ? periods.usual_ns - beyond_ns / count : periods.usual_ns;
}

// The standard error of the excess of `longer` gaps over the mean of the others, for each of all gaps. A longer gap
// would have scattered as the others do, and their mean has an error too. 0: there are too few others.
double beyond_error_ns(const StepPeriods& periods, size_t longer) {
  std::vector<double> usual;
  for (size_t i = 0; i < periods.gaps.size(); ++i)
    if (periods.beyond_ns(i) == 0) usual.push_back(periods.gaps[i].ns);
  const double k = static_cast<double>(longer), n = static_cast<double>(usual.size());
  return n < 2 ? 0 : sample_std(usual) * k * std::sqrt(1 / k + 1 / n) / static_cast<double>(periods.gaps.size());
}

}  // namespace

CauseUse judge_between_steps(Cause& cause, const JudgeFacts& facts) {
  if (cause.sometimes) return CauseUse::kCause;
  const double usual_ns = usual_gap_ns(facts.periods);
  const bool short_one = cause.place().name.empty() && usual_ns < facts.shortest_ns;
  const double min = cause.own.as<BetweenStepsOwn>().may_be_optimizer ? kMinTail : kMinGap;
  return short_one || facts.coverage.replicas_unread() > 0 || usual_ns < min * facts.step_ns ? CauseUse::kLine
                                                                                             : CauseUse::kCause;
}

// A gap that has no name and is shorter than a cell belongs to every training loop. As much of a longer gap may belong
// to it too.
void known_between_steps(const KnownFacts& facts, std::vector<Cause>& out) {
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
    if (gap.sometimes) {
      cause.price.base = PriceBase::kPeriod;
      cause.price.lost_error_ns = beyond_error_ns(facts.periods, gap.steps.size());
    }
    cause.price.outside = gap.sometimes && !facts.periods.long_gaps.empty();
    cause.own = BetweenStepsOwn{std::move(gap.steps), !gap.sometimes && !optimizers && gap.name.empty()};
    out.push_back(std::move(cause));
  }
}

Telling tell_between_steps(std::span<const Cause* const> causes, const TellContext& context) {
  constexpr size_t kShown = 6;
  const Cause& c = *causes.front();
  const auto& own = c.own.as<BetweenStepsOwn>();
  const std::string& name = c.place().name;
  const bool one = c.figures.count == 1;
  Args args = context.args(c);
  if (c.sometimes) {
    if (context.list.wall_ns > 0) args.set("lost", percent(c.price.lost_ns / context.list.wall_ns));
    args.set("step", int64_t{own.at_steps.front()});
  }
  auto steps = mapped<std::string>(own.at_steps, [&](const int32_t step) { return std::to_string(step); });
  const bool only = c.figures.rank != kUnknown && !name.empty();  // it is on one rank
  args.set("steps", some_of(steps, kShown)).flag("only", only).flag("unread", context.list.replicas_unread);
  args.flag("workers", has_loader_processes(context.trace.names));
  if (name.empty())
    args.set("unknown", words(own.may_be_optimizer ? "between.steps.optimizer" : "between.steps.unknown", args));
  else args.set("unknown", name == kDataLoader ? words("between.steps.loader", args) : Text());
  args.set("saves", words(c.sometimes ? "between.steps.saves.mean" : "between.steps.saves", args));
  Telling telling = say_cause("between.steps", "between.steps", args);
  if (c.sometimes) telling.title = words(one ? "between.steps.one.title" : "between.steps.some.title", args);
  if (c.sometimes && one) telling.step = own.at_steps.front();
  if (only) telling.rank = c.figures.rank;
  telling.table = {"waterfall", "waterfall-periods"};
  return telling;
}

}  // namespace stageline
