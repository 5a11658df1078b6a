#include "diagnosis/causes/headline.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "base/number.h"
#include "model/finding_words.h"
#include "model/pipeline_words.h"

namespace stageline {
namespace {

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

std::vector<SpanPart> parts_of(const FindingFacts& f, const Waterfall& w, bool replays) {
  const WaterfallStep mean = mean_of(w);
  const double unknown = w.unnumbered + w.without_producer;
  // Where only a part of the run was read, work repeats, or several steps are under way at once, the sum says nothing.
  const bool steps_meet = f.coverage.forwards_alone() && f.usual_period_ns < mean.span_ns;
  if (!replays || steps_meet || f.coverage.by_warm_up() || f.coverage.not_analysable() || !w.known() ||
      !(mean.span_ns > 0) || unknown > kMaxUnknownWaits * w.units)
    return of_period(f.usual_period_ns, f.mean_step_ns,
                     {span_part("compute", "part.compute", f.compute), span_part("waiting", "part.waiting", f.bubble),
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

}  // namespace

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
  // If work repeats within a step, the start of that step is unknown.
  h.title = words(f.coverage.repeats() ? "headline.repeats" : "headline.title", args);
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
  h.sizes = words("headline.sizes", args);
  if (!recognition.candidates.empty()) {
    args.set("schedule", recognition.best().name).set("score", percent(recognition.best().score));
    args.set("equal", equal_lists_text(recognition)).set("near", runner_up_text(recognition));
    add_lead(h, words(recognition.recognised ? "headline.schedule" : "headline.unrecognised", args));
  }
  if (f.trace.parts.size() == 1 && f.coverage.stages() <= 1) add_lead(h, words("headline.one_rank"));
  if (unsure) add_lead(h, words("headline.apart"));
  return h;
}

}  // namespace stageline
