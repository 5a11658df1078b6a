#include "diagnosis/causes/findings.h"

#include <cctype>

#include "diagnosis/causes/causes.h"
#include "diagnosis/causes/finding_facts.h"
#include "model/pipeline_words.h"
#include "pipeline/clocks/align.h"

namespace stageline {
namespace {

constexpr double kMaxUnknownWaits = 0.1;

// Turns shares of a step's span into shares of its period, which add up to 1. The period's time beyond the span is time
// between steps. Where steps overlap, the period is shorter: work before and after the pipeline then runs during
// another step and costs nothing.
std::vector<SpanPart> of_period(double period_ns, double span_ns, std::vector<SpanPart> parts) {
  if (!(period_ns > 0) || !(span_ns > 0)) return parts;
  if (period_ns == span_ns) return parts;
  double sum = 0;
  for (SpanPart& part : parts) sum += part.share *= span_ns / period_ns;
  if (period_ns > span_ns) {
    parts.push_back(span_part("between", "part.between", (period_ns - span_ns) / period_ns));
    return parts;
  }
  const auto outside =
      std::ranges::find_if(parts, [](const SpanPart& part) { return part.id == "tail" || part.id == "outside"; });
  if (outside != parts.end()) {
    const double hidden = std::clamp(sum - 1, 0.0, std::max(0.0, outside->share));
    outside->share -= hidden, sum -= hidden;
  }
  for (SpanPart& part : parts) part.share /= sum;
  return parts;
}

// Returns true when only forwards are known, and other ranges have names that no rule knows: these may be backwards.
bool only_forwards_known(const FindingFacts& f) {
  return f.coverage.forwards_alone() && f.trace.diagnostics.count("cells.unknown_ranges") > 0;
}

std::vector<SpanPart> parts_of(const FindingFacts& f, const Waterfall& w, bool replays) {
  const WaterfallStep mean = mean_of(w);
  const double unknown = w.unnumbered + w.without_producer;
  // Where only a part of the run was read, work repeats, or several steps are under way at once, the sum says nothing.
  const bool steps_meet = f.coverage.forwards_alone() && f.usual_period_ns < mean.span_ns;
  if (!replays || steps_meet || f.coverage.lacks_end() || f.coverage.not_analysable() || !w.known() ||
      !(mean.span_ns > 0) || unknown > kMaxUnknownWaits * w.units)
    return of_period(f.usual_period_ns, f.mean_step_ns,
                     {span_part("compute", "part.compute", f.compute),
                      span_part("waiting", only_forwards_known(f) ? "part.waiting.forwards" : "part.waiting", f.bubble),
                      span_part("outside", "part.outside", f.outside)});
  std::vector<SpanPart> parts;
  const auto add = [&](const std::string& id, double share) { parts.push_back(span_part(id, "part." + id, share)); };
  const auto share = [&](WaterfallPart part) { return mean.part_ns[part] / mean.span_ns; };
  add("compute", share(WaterfallPart::kCompute));
  add("bubble", share(WaterfallPart::kSchedule));
  add("imbalance", share(WaterfallPart::kImbalance));
  add("jitter", share(WaterfallPart::kJitter));
  add("message", share(WaterfallPart::kLatency));
  // The wait of the fastest replicas is a cause of its own, and in some jobs the largest one.
  double tail = share(WaterfallPart::kTail), replicas = 0;
  if (!w.clock_free) replicas = mean.tail_ns[TailPart::kReplicas] / mean.span_ns;
  if (replicas > 0) add("replicas", replicas);
  // Without the wait that has a bar of its own it is not what the waterfall's table calls by the plain name.
  parts.push_back(span_part("tail", replicas > 0 ? "part.tail.others" : "part.tail", tail - replicas));
  add("rest", share(WaterfallPart::kRest));
  return of_period(f.usual_period_ns, mean.span_ns, std::move(parts));
}

// The parts of a step are the waterfall's, as shares of the mean step. In three cases they are only compute, waiting
// and time outside the pipeline. There may be no waterfall, or more than kMaxUnknownWaits of the cells wait for
// something that was not recorded. Or a replay with the run's own times does not reproduce its steps (`replays` is
// false). The last case matters because the waterfall is made of replays.
Headline headline_of(const FindingFacts& f, const Recognition& recognition, const Waterfall& waterfall, bool replays) {
  Headline h;
  if (!f.contradictory) h.parts = parts_of(f, waterfall, replays);
  const std::string step = human_duration(f.period_ns);
  // The sentence and the bar below it give one share of computing.
  double waiting = f.usual_period_ns > 0 ? 1 - f.compute * f.mean_step_ns / f.usual_period_ns : 1;
  for (const SpanPart& part : h.parts)
    if (part.id == "compute") waiting = 1 - part.share;
  const std::string waiting_share = fixed(waiting * 100, 0) + "\u202f%";
  const bool unsure = !f.trace.comparable();
  Args args;
  args.set("step", step).flag("unsure", unsure).set("waiting", waiting_share);
  args.set("compute", fixed((1 - waiting) * 100, 0) + "\u202f%");
  // If work repeats within a step, the start of that step is unknown.
  h.title = words(f.coverage.repeats()     ? "headline.repeats"
                  : only_forwards_known(f) ? "headline.title.forwards"
                                           : "headline.title",
                  args);
  const auto number = [&](const std::string& name, int64_t n) { args.set(name, n).flag(name + ".one", n == 1); };
  Text part = f.coverage.part();
  if (!part.empty()) part.en.front() = static_cast<char>(std::toupper(part.en.front()));
  const bool two_ways = recognition.recognised && recognition.best().layout == ChunkLayout::kBidirectional;
  args.set("chunks", int64_t{f.extent.chunk_count}).flag("v", false);
  args.set("ways",
           f.extent.chunk_count > 1 ? words(two_ways ? "headline.directions" : "schedule.ways.chunks", args) : Text());
  args.set("what", run_text(f.trace, f.extent, f.coverage.stages(), part, f.coverage.part_of_all()));
  // Labels of micro-batches may be arbitrary; a schedule knows its own number.
  set_micro_batches(args, f.trace, recognition.recognised ? recognition.best().sizes.micro_batches : 0,
                    f.coverage.holed());
  number("steps", f.extent.step_count);
  h.sizes = words(args.of("micro_batches", false) != "0" ? "headline.sizes" : "headline.sizes.unnumbered", args);
  if (!recognition.candidates.empty()) {
    args.set("schedule", recognition.best().name).set("score", percent(recognition.best().score));
    args.set("equal", equal_lists_text(recognition)).set("near", runner_up_text(recognition));
    add_lead(h, words(recognition.recognised ? "headline.schedule" : "headline.unrecognised", args));
  }
  if (f.trace.parts.size() == 1 && f.coverage.stages() <= 1) add_lead(h, words("headline.one_rank"));
  if (only_forwards_known(f)) add_lead(h, words("headline.unknown_ranges"));
  if (unsure) add_lead(h, words("headline.apart"));
  return h;
}

constexpr double kOutsideShare = 0.1;
constexpr double kBubbleShare = 0.05;
constexpr double kReplicaShare = 0.05;
constexpr double kAbsurdSteps = 100;  // a cell of more than this many median steps is absurd

// A ratio that no run can have comes from a damaged timestamp: it is shown as "> 1 000 000×" rather than in all its
// digits.
std::string times(double ratio) {
  if (ratio >= 1e6) return "> 1 000 000×";
  return (ratio >= 1000 ? grouped(static_cast<int64_t>(ratio)) : fixed(ratio, 2)) + "×";
}
std::string number(int64_t n) { return grouped(n); }

FindingFacts collect(const Run& run) {
  FindingFacts f{run.trace(), coverage_of(run), extent_of(run.trace()), sums_of(run), {}};
  std::vector<double> spans;
  for (const StepSums& step : f.sums.steps)
    if (!f.sums.is_incomplete(step.step)) spans.push_back(step.span_ns());
  f.median_step_ns = median_of(spans);
  spans.clear();
  for (const StepSums& step : f.sums.steps)
    if (!f.sums.is_outlier(step.step)) spans.push_back(step.span_ns());
  f.mean_step_ns = mean_of(spans);
  f.costs = stage_costs(f.trace, [&](size_t i) { return !f.sums.is_outlier(f.trace.cells.step[i]); });
  double whole = 0, busy = 0, waiting = 0;
  size_t s = 0;
  for (const RankSums& rank : f.sums.ranks) {
    while (f.sums.steps[s].step != rank.step) ++s;
    if (f.sums.is_outlier(rank.step)) continue;
    whole += f.sums.steps[s].span_ns();
    busy += rank.busy_ns;
    waiting += rank.span_bubble_ns;
  }
  if (whole > 0) {
    f.compute = busy / whole;
    f.bubble = waiting / whole;
    f.outside = std::max(0.0, 1 - f.compute - f.bubble);
  }
  return f;
}

void add_bubble(const FindingFacts& f, const Recognition& recognition, std::vector<Finding>& out) {
  // Without recorded backwards, ranks may have run some while they seem to wait.
  const std::vector<CellKind>& kinds = f.trace.cells.kind;
  if (f.bubble < kBubbleShare || f.coverage.repeats() || std::ranges::none_of(kinds, is_backward)) return;
  const double in_pipeline = f.bubble / (f.bubble + f.compute);
  Finding finding;
  finding.id = "bubble";
  finding.weight = f.bubble;
  finding.value = percent(in_pipeline);
  finding.value_note = words("note.span");
  say(finding, "finding.bubble", Args().set("share", percent(in_pipeline)));
  const int64_t steps = f.sums.steps.size();
  finding.detail = bubble_words(f.trace, f.costs, steps, in_pipeline, recognition);
  out.push_back(std::move(finding));
}

// Reports that steps differ, where there are too few to find the usual one.
void add_uneven_steps(const FindingFacts& f, std::vector<Finding>& out) {
  const std::vector<StepSums>& steps = f.sums.steps;
  if (steps.size() < 2 || steps.size() > kMaxFewSteps || !f.sums.incomplete.empty()) return;
  const auto [min, max] = std::minmax_element(
      steps.begin(), steps.end(), [](const StepSums& a, const StepSums& b) { return a.span_ns() < b.span_ns(); });
  const double shortest = min->span_ns(), longest = max->span_ns();
  if (!(shortest > 0) || longest < kOutlierStep * shortest) return;
  Finding finding;
  finding.id = "step.uneven";
  finding.weight = (f.mean_step_ns - shortest) / f.mean_step_ns;
  finding.value = times(longest / shortest);
  Args args;
  args.set("longest", int64_t{max->step}).set("shortest", int64_t{min->step}).set("ratio", finding.value);
  args.set("longest_time", human_duration(longest)).set("shortest_time", human_duration(shortest));
  args.set("steps", number(static_cast<int64_t>(steps.size()))).flag("first", max == steps.begin());
  say(finding, "finding.uneven", args);
  out.push_back(std::move(finding));
}

// Where a step lasts longer than any step can, adds a sentence on the cell that makes it so long.
void say_absurd_cell(const FindingFacts& f, const StepSums& step, Finding& finding) {
  const Cells& cells = f.trace.cells;
  if (step.span_ns() < kAbsurdSteps * f.median_step_ns) return;
  size_t longest = SIZE_MAX;
  for (size_t i = 0; i < cells.size(); ++i)
    if (cells.step[i] == step.step && is_compute(cells.kind[i]) &&
        (longest == SIZE_MAX || cells.dur_ns(i) > cells.dur_ns(longest)))
      longest = i;
  if (longest == SIZE_MAX || cells.dur_ns(longest) < kAbsurdSteps * f.median_step_ns) return;
  const Cell cell = cells.at(longest);
  Args args;
  args.set("cell", cell_label(cell, cell.chunk > 0));
  args.set("rank", int64_t{f.trace.parts[cell.part].rank});
  args.set("time", human_duration(cells.dur_ns(longest)));
  finding.detail += words("step.outlier.hang", args);
}

void add_outlier_steps(const FindingFacts& f, std::vector<Finding>& out) {
  const int64_t count = f.sums.outliers.size() - f.sums.incomplete.size();
  double lost = 0, total = 0;
  const StepSums* worst = nullptr;
  for (const StepSums& step : f.sums.steps) {
    total += f.sums.is_incomplete(step.step) ? 0 : step.span_ns();
    if (!f.sums.is_outlier(step.step) || f.sums.is_incomplete(step.step)) continue;
    lost += step.span_ns() - f.median_step_ns;
    if (!worst || step.span_ns() > worst->span_ns()) worst = &step;
  }
  const bool warm_up =
      count == 1 && worst == &f.sums.steps.front() && worst->span_ns() < kAbsurdSteps * f.median_step_ns;
  Finding finding;
  finding.id = "step.outlier";
  finding.weight = lost / total;
  finding.value = times(worst->span_ns() / f.median_step_ns);
  Args args;
  args.set("count", number(count)).set("all", number(static_cast<int64_t>(f.sums.steps.size())));
  args.flag("one", count == 1).set("step", int64_t{worst->step}).set("median", human_duration(f.median_step_ns));
  args.set("longest", human_duration(worst->span_ns())).set("share", percent(lost / total));
  finding.title = words("step.outlier.title", args);
  finding.detail = words("finding.outlier.detail", args.flag("warm_up", warm_up));
  finding.value_note = words("finding.outlier.note");
  finding.step = worst->step;
  say_absurd_cell(f, *worst, finding);
  out.push_back(std::move(finding));
}

void add_outside(const FindingFacts& f, std::vector<Finding>& out) {
  if (f.outside < kOutsideShare) return;
  Finding finding;
  finding.id = "outside";
  finding.weight = f.outside;
  finding.value = percent(f.outside);
  finding.value_note = words("note.step");
  say(finding, "finding.outside", Args().set("share", percent(f.outside)));
  out.push_back(std::move(finding));
}

// If only one in many links is early, no clock is wrong: a wrong clock spoils all links of a pair.
bool few_are_early(const FindingFacts& f) {
  constexpr int64_t kFewOf = 20;
  return f.early.count * kFewOf <= std::ssize(f.trace.links);
}

void see_early_links(FindingFacts& f) {
  if (f.coverage.repeats() || !f.trace.comparable()) return;  // which repetition waits for which is unknown
  constexpr int64_t kToleranceNs = 50'000;  // timestamps of one machine differ by tens of microseconds
  f.early = early_links(f.trace, std::max(kToleranceNs, stamp_unit_ns(f.trace)));
  auto rank_spans = mapped<double>(f.sums.ranks, [&](const RankSums& rank) { return rank.last_ns - rank.first_ns; });
  f.contradictory = f.early.count > 0 && !few_are_early(f) && f.early.worst_ns > median_of(rank_spans);
}

void add_causality(const FindingFacts& f, std::vector<Finding>& out) {
  const Cells& cells = f.trace.cells;
  const auto [violations, worst, first] = f.early;
  if (violations == 0) return;
  const std::string max = human_duration(worst);
  const bool one_machine = f.trace.clock == ClockState::kShared;
  const bool few = few_are_early(f);
  Finding finding;
  finding.id = "clock.causality";
  finding.is_time = false;
  finding.weight = 0.5 * violations / f.trace.links.size();
  finding.value = max;
  Args args;
  args.set("count", number(violations)).set("of", number(static_cast<int64_t>(f.trace.links.size())));
  args.set("most", max).flag("cells", one_machine || few);
  args.flag("recorded", f.trace.alignment == AlignState::kRaw || clock_summary(f.trace).by.empty());
  if (few) {
    const Cell cell = cells.at(first->to_cell);
    Args which;
    which.set("cell", cell_label(cell, true)).set("step", int64_t{cell.step});
    which.set("rank", int64_t{f.trace.parts[cell.part].rank});
    args.set("cell", words("finding.causality.cell", which));
  }
  args.set("reason", words(few           ? "finding.causality.few"
                           : one_machine ? "finding.causality.one_machine"
                                         : "finding.causality.clocks",
                           args));
  say(finding, "finding.causality", args);
  out.push_back(std::move(finding));
}

// Replicas meet at the gradient reduction: those that finish early wait for the last one.
void add_replicas(const FindingFacts& f, std::vector<Finding>& out) {
  if (f.extent.dp_count < 2 || !f.trace.comparable()) return;
  double waited = 0, whole = 0;
  size_t r = 0;
  for (const StepSums& step : f.sums.steps) {
    std::map<int32_t, int64_t> last;  // replica → end of its last compute cell
    for (; r < f.sums.ranks.size() && f.sums.ranks[r].step == step.step; ++r) {
      int64_t& end = last[f.trace.parts[f.sums.ranks[r].part].dp];
      end = std::max(end, f.sums.ranks[r].last_ns);
    }
    if (f.sums.is_outlier(step.step)) continue;
    for (const auto& [dp, end] : last) {
      waited += step.pipeline_end_ns - end;
      whole += step.pipeline_span_ns();
    }
  }
  if (whole <= 0 || waited / whole < kReplicaShare) return;
  Finding finding;
  finding.id = "replica.uneven";
  finding.weight = f.bubble > 0 ? (f.bubble + f.compute) * waited / whole : 0;
  finding.value = percent(waited / whole);
  finding.value_note = words("note.span");
  Args args;
  // With context parallelism, one replica may be several pipelines.
  args.flag("replicas", f.trace.context_parallel <= 1);
  say(finding, "finding.replicas", args.set("share", finding.value));
  out.push_back(std::move(finding));
}

void add_per_rank_clock(const FindingFacts& f, std::vector<Finding>& out) {
  if (f.trace.comparable()) return;
  Finding finding;
  finding.id = "clock.per_rank";
  finding.weight = 0;
  say(finding, "finding.own_clocks");
  out.push_back(std::move(finding));
}

}  // namespace

void by_weight(std::vector<Finding>& list) {
  sort_stably(list, std::greater(), &Finding::weight);
  std::ranges::stable_partition(list, [](const Finding& x) { return x.id == "stage.slow" || x.id == "rank.slow"; });
}

Findings find_findings(const Run& run) {
  const Trace& trace = run.trace();
  const TheoryRun& theory = theory_of(run);
  const RunCoverage& coverage = coverage_of(run);
  const bool replayed = graph_of(run, LaunchRule::kInOrder).graph != nullptr;
  const bool steps_reported = replayed && !causes_of(run).not_analysable;
  FindingFacts facts = collect(run);
  facts.usual_period_ns = step_means_of(run).usual.period_ns();
  facts.period_ns = replayed ? causes_of(run).step_ns : facts.usual_period_ns;
  see_early_links(facts);
  Findings result;
  if (facts.sums.ranks.empty()) {
    result.headline.title = words("headline.nothing");
    return result;
  }
  const Recognition& recognition = theory.recognition;
  // explain() adds those that a replay can price.
  if (!replayed) result.list = cause_findings(trace, causes_of(run), recognition);
  // Findings that ranks wait do not name a cause; next to causes with a price they are not listed.
  std::vector<Finding>& waits = replayed ? result.others : result.list;
  if (!facts.contradictory) add_bubble(facts, recognition, waits);
  if (!coverage.repeats()) {
    if (facts.sums.outliers.size() == facts.sums.incomplete.size()) add_uneven_steps(facts, result.list);
    else if (!steps_reported) add_outlier_steps(facts, result.list);
  }
  add_causality(facts, result.list);
  if (!facts.contradictory) {
    add_outside(facts, waits);
    add_replicas(facts, waits);
    if (coverage.whole()) add_undelayed(trace, theory, result.list);
    add_late(trace, theory, facts.compute + facts.bubble, waits);
  }
  by_weight(result.list);
  by_weight(result.others);
  add_per_rank_clock(facts, result.list);
  if (result.list.empty() && result.others.empty()) result.list.push_back(nothing_found("finding.nothing"));
  // Ranks with separate clocks are not replayed together, and the waterfall takes each rank by itself.
  result.headline = headline_of(facts, recognition, waterfall_of(run), replayed || !trace.comparable());
  return result;
}

}  // namespace stageline
