#include "model/run_extent.h"
#include "model/statistics.h"
#include "pipeline/replay/theory.h"
#include "schedules/registry.h"

namespace stageline {

ScheduleSequences::ScheduleSequences(const TheoryRun& theory) : theory_(theory) {
  for (const TheorySize& size : theory.sizes) places_.emplace_back(size.schedule);
}

ScheduleSequences::Sequence ScheduleSequences::of(const OrderGraph& graph, size_t first, size_t last) const {
  Sequence out;
  if (theory_.size_of.empty() || theory_.size_of[first] == kUnknown) return out;
  const int32_t size = theory_.size_of[first];
  std::vector<int32_t> place(graph.units.size());
  out.as_it_ran = true;
  for (size_t l = first; l < last; ++l) {
    if (theory_.size_of[l] != size) return {};
    int32_t before = -1;
    const RankList& list = theory_.lists.lists[l];
    for (uint32_t u = graph.list_begin[l - first]; u < graph.list_begin[l - first + 1]; ++u) {
      const uint32_t t = graph.units[u].token;
      place[u] = places_[size].find(list.stage, theory_.lists.tokens[t], t - list.begin);
      if (place[u] == kUnknown) return {};
      out.as_it_ran &= place[u] >= before;
      before = place[u];
    }
  }
  if (out.as_it_ran) {
    out.known = true;
    out.order = graph.order;
    return out;
  }
  std::vector<uint32_t> sequence(graph.units.size());
  for (uint32_t u = 0; u < sequence.size(); ++u) sequence[u] = u;
  for (size_t l = 0; l + 1 < graph.list_begin.size(); ++l)
    std::stable_sort(sequence.begin() + graph.list_begin[l], sequence.begin() + graph.list_begin[l + 1],
                     [&](uint32_t a, uint32_t b) { return place[a] < place[b]; });
  out.known = reorder(graph, sequence, out.order);
  return out;
}

namespace {

// Returns for each kind the median over stages; 0 when there is no cell of the kind.
std::map<CellKind, double> usual_costs(const std::vector<StageCost>& costs) {
  std::map<CellKind, std::vector<double>> of_stages;
  for (const StageCost& cost : costs) of_stages[cost.kind].push_back(cost.mean_ns);
  std::map<CellKind, double> usual;
  for (auto& [kind, values] : of_stages) usual[kind] = median_of(std::move(values));
  return usual;
}

// Costs that were not recorded are computed from others: halves of a backward from the whole, and the whole from its
// halves.
UnitCosts unit_costs(const std::vector<StageCost>& costs) {
  std::map<CellKind, double> usual = usual_costs(costs);
  const double f = usual[CellKind::kForward];
  double b = usual[CellKind::kBackward], i = usual[CellKind::kInputGrad], w = usual[CellKind::kWeightGrad];
  if (b <= 0) b = i + w;
  if (i <= 0) i = w > 0 ? b - w : b / 2;
  if (w <= 0) w = b - i;
  double overlapped = usual[CellKind::kForwardBackward];
  if (overlapped <= 0) overlapped = f + b;
  const auto ns = [](double value) { return static_cast<int64_t>(std::llround(std::max(0.0, value))); };
  return {ns(f), ns(i), ns(w), ns(b), ns(overlapped), 0};
}

}  // namespace

double ideal_bubble(const Recognition& recognition, const std::vector<StageCost>& costs) {
  if (!recognition.recognised) return kNaN;
  const ScheduleCandidate& best = recognition.best();
  if (int64_t{best.sizes.stages} * best.sizes.micro_batches * best.sizes.chunks * 3 > kMaxIdealCells) return kNaN;
  const UnitCosts each = unit_costs(costs);
  if (each.forward_ns <= 0 || each.backward_ns <= 0) return kNaN;
  const Result<Schedule> schedule = make_schedule(best.name, best.sizes);
  if (!schedule) return kNaN;
  const auto times = replay(*schedule, each);
  if (!times) return kNaN;
  const ScheduleNumbers numbers = schedule_numbers(*schedule, *times);
  if (numbers.span_ns <= 0 || numbers.ranks.empty()) return kNaN;
  const double waiting = sum_over<double>(numbers.ranks, &RankNumbers::span_bubble_ns);
  return waiting / (numbers.span_ns * static_cast<double>(numbers.ranks.size()));
}

Text bubble_words(const Trace& trace, const std::vector<StageCost>& costs, int64_t steps, double measured,
                  const Recognition& recognition) {
  const Extent extent = extent_of(trace);
  const int32_t p = std::max(extent.stage_count, trace.pipeline_stages), m = micro_batches_per_step(trace);
  const bool split = std::ranges::any_of(costs, [](const StageCost& c) { return c.kind == CellKind::kWeightGrad; });
  double min = ideal_bubble(recognition, costs);
  Args args;
  const char* name = "bubble.replayed";
  if (std::isfinite(min)) {
    const ScheduleCandidate& best = recognition.best();
    args.set("schedule", best.name).set("stages", int64_t{best.sizes.stages});
    args.count("micro_batches", best.sizes.micro_batches);
  } else if (p > 1 && m > 0 && extent.chunk_count == 1 && !split) {
    min = (p - 1) / static_cast<double>(m + p - 1);
    args.set("stages", int64_t{p}).count("micro_batches", m);
    name = "bubble.formula";
  } else {
    return words("bubble.measured", args.count("steps", steps));
  }
  const char* const verdict = measured < min * 0.95   ? "bubble.verdict.impossible"
                              : measured < min * 1.15 ? "bubble.verdict.schedule"
                                                      : "bubble.verdict.rest";
  return words(name, args.set("least", percent(min)).set("verdict", words(verdict)));
}

}  // namespace stageline
