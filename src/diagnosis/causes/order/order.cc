// Causes that lie in the order of work: an order left by mistake, or run without the split that the schedule is built
// on.
//
//   as it ran             its own order, its own durations, one latency for all messages     T
//   order restored        the same cells in the schedule's order                             T − what the order costs
//   split as well         whole backwards where the schedule has I and W, as the schedule    … − what the missing
//                         has them                                                               split costs
#include "diagnosis/causes/telling.h"
#include "pipeline/replay/order_graph.h"
#include "pipeline/replay/replay.h"

namespace stageline {
namespace {

constexpr size_t kWays = 3;  // F; B or I; W: these distinguish the work of one micro-batch on one chunk

// The stages that lack the split that the schedule has there.
struct StageSplits {
  // For each stage: the schedule has weight gradients there, but the run has whole backwards and no weight gradients.
  std::vector<bool> lacks;
  double input_share = 0.5;  // I ÷ (I + W) on the stages that split
  int64_t count() const { return std::ranges::count(lacks, true); }
};

StageSplits stage_splits(const StepGraph& g, const std::vector<bool>& counts, const Schedule& schedule) {
  const size_t stages = schedule.ranks.size();
  std::vector<bool> whole(stages), split(stages);
  double input = 0, weight = 0;
  for (size_t s = 0; s < g.steps.size(); ++s)
    for (uint32_t op = g.steps[s].begin; counts[s] && op < g.steps[s].end; ++op) {
      const int32_t stage = g.stage(op);
      if (stage < 0 || static_cast<size_t>(stage) >= stages) continue;
      if (g.kind[op] == CellKind::kBackward) whole[stage] = true;
      if (g.kind[op] == CellKind::kInputGrad) input += g.dur_ns[op];
      if (g.kind[op] == CellKind::kWeightGrad) split[stage] = true, weight += g.dur_ns[op];
    }
  StageSplits out;
  if (input > 0 && weight > 0) out.input_share = input / (input + weight);
  for (size_t s = 0; s < stages; ++s) {
    const RankOrder& order = schedule.ranks[s];
    const bool wanted = std::ranges::any_of(
        order, [](const ScheduleCell& cell) { return cell.actions()[0].kind == CellKind::kWeightGrad; });
    out.lacks.push_back(wanted && whole[s] && !split[s]);
  }
  return out;
}

// One latency for all messages, since the time of single links has nothing to do with order.
double usual_latency_ns(const StepGraph& g) {
  std::vector<double> transfers;
  for (uint32_t op = 0; op < g.size(); ++op)
    if (is_receive(g.kind[op])) transfers.push_back(std::max(0.0, g.dur_ns[op]));
  return transfers.empty() ? 0 : median_of(std::move(transfers));
}

// The spans of one pipeline (a step of a replica) in the three orders; NaN where a span is unknown.
struct OrderSpans {
  double own_ns = kNaN, restored_ns = kNaN, split_ns = kNaN;
};

class Orders {
 public:
  Orders(const Trace& trace, const TheoryRun& theory, StageSplits splits, double latency_ns)
      : theory_(theory), splits_(std::move(splits)), latency_ns_(latency_ns),
        graphs_(trace, theory.lists, theory.recognition.best().layout), sequences_(theory) {}

  // For the pipeline of lists [first, last).
  OrderSpans spans(size_t first, size_t last) const {
    OrderSpans out;
    const OrderGraph graph = graphs_.graph(first, last);
    const ScheduleSequences::Sequence schedule = sequences_.of(graph, first, last);
    if (!schedule.known) return out;
    out.own_ns = span(graph, graph.order);
    out.restored_ns = schedule.as_it_ran ? out.own_ns : span(graph, schedule.order);
    if (splits_.count() > 0) out.split_ns = split_span(graph, first, last);
    return out;
  }

 private:
  double span(const OrderGraph& graph, const std::vector<uint32_t>& order) const {
    return order_span_ns(graph, order, [&](uint32_t u) { return graph.units[u].own_ns; }, latency_ns_);
  }

  // The span with the schedule's own cells, each taking what its work took in this pipeline; tensor-parallel peers
  // count by their mean.
  double split_span(const OrderGraph& graph, size_t first, size_t last) const {
    const Schedule& schedule = theory_.size(first)->schedule;
    const size_t chunks = schedule.sizes.chunks;
    const size_t micro_batches = schedule.sizes.micro_batches;
    const auto slot = [&](int32_t stage, int32_t chunk, int32_t micro_batch) {
      return (stage * chunks + chunk) * micro_batches + micro_batch;
    };
    struct Slot {
      std::array<double, kWays> ns{};
      std::array<int32_t, kWays> count{};
    };
    std::vector<Slot> slots(schedule.ranks.size() * chunks * micro_batches);
    for (const OrderUnit& unit : graph.units) {
      const size_t halves = unit.kind == CellKind::kForwardBackward ? 2 : 1;
      for (size_t h = 0; h < halves; ++h) {
        const WorkToken& token = theory_.lists.tokens[unit.token + h];
        if (token.chunk < 0 || static_cast<size_t>(token.chunk) >= chunks || token.micro_batch < 0 ||
            static_cast<size_t>(token.micro_batch) >= micro_batches)
          return kNaN;
        Slot& at = slots[slot(theory_.lists.lists[first + unit.list].stage, token.chunk, token.micro_batch)];
        // Both halves of an overlapped pair have the pair's interval; each counts half of it, so that the pair counts
        // once.
        at.ns[direction_of(token.kind)] += unit.own_ns / halves;
        ++at.count[direction_of(token.kind)];
      }
    }
    bool whole = last > first;
    ReplayCosts costs;
    costs.latency_ns = std::llround(latency_ns_);
    costs.cell_ns = [&](int32_t stage, const ScheduleCell& cell) {
      double ns = 0;
      for (const Action& action : cell.actions()) {
        const Slot& at = slots[slot(stage, action.chunk, action.micro_batch)];
        const auto taken = [&](size_t way) { return at.count[way] > 0 ? at.ns[way] / at.count[way] : 0; };
        const size_t way = direction_of(action.kind);
        const bool half = action.kind == CellKind::kInputGrad || action.kind == CellKind::kWeightGrad;
        if (half && at.count[2] == 0) {  // a part of a whole backward
          ns += taken(1) * (way == 1 ? splits_.input_share : 1 - splits_.input_share);
          whole = whole && at.count[1] > 0;
        } else {
          ns += taken(way) + (action.kind == CellKind::kBackward ? taken(2) : 0);
          whole = whole && at.count[way] > 0;
        }
      }
      return static_cast<int64_t>(std::llround(ns));
    };
    const auto times = replay(schedule, costs);
    return times && whole ? schedule_numbers(schedule, *times).span_ns : kNaN;
  }

  const TheoryRun& theory_;
  StageSplits splits_;
  double latency_ns_;
  OrderGraphs graphs_;
  ScheduleSequences sequences_;
};

// For each step the spans of its longest replica; NaN where one is unknown.
std::vector<OrderSpans> step_spans(const StepGraph& g, const TheoryRun& theory, const std::vector<bool>& counts,
                                   const Orders& orders) {
  struct Pipeline {
    size_t first, last, step;
  };
  std::vector<Pipeline> pipelines;
  size_t step = 0;
  for (size_t first = 0; first < theory.lists.lists.size();) {
    const size_t last = theory.lists.group_end(first);
    const int32_t number = theory.lists.lists[first].step;
    while (step < g.steps.size() && g.steps[step].step < number) ++step;
    if (step < g.steps.size() && g.steps[step].step == number && counts[step]) pipelines.push_back({first, last, step});
    first = last;
  }
  std::vector<OrderSpans> of(pipelines.size());
  parallel_for(pipelines.size(), [&](size_t i) { of[i] = orders.spans(pipelines[i].first, pipelines[i].last); });
  std::vector<OrderSpans> out(g.steps.size());
  for (size_t i = 0; i < pipelines.size(); ++i) {
    OrderSpans& all = out[pipelines[i].step];
    const bool first = i == 0 || pipelines[i - 1].step != pipelines[i].step;
    const auto raise = [&](double& to, double own) { to = first ? own : std::isnan(own) ? kNaN : own > to ? own : to; };
    raise(all.own_ns, of[i].own_ns);
    raise(all.restored_ns, of[i].restored_ns);
    raise(all.split_ns, of[i].split_ns);
  }
  return out;
}

}  // namespace

// All orders are replayed by the same rules with each cell's own duration, so that they differ only in order; late
// starts and times of single links are left out. A step counts where all its replicas have every cell that is compared.
// Adds nothing without a recognised schedule, or where its theory is not known. O(cells log cells) where there is
// something to price.
void known_order(const KnownFacts& facts, std::vector<Cause>& out) {
  const TheoryRun& theory = facts.theory;
  // Where only the warm-up shows that stages at the end are missing, the recognised order is one of fewer stages.
  if (facts.coverage.lacks_end() || !theory.theory.known() || theory.sizes.empty()) return;
  const Recognition& recognition = theory.recognition;
  Cause order{.kind = &order_cause};
  order.certain = true;  // the lists are facts, and both orders are replayed with the same durations
  order.figures.of = recognition.lists;
  for (const Divergence& d : recognition.divergences) order.figures.count += d.is_order ? d.lists : 0;
  const bool leaves = order.figures.count > 0;
  const StageSplits splits = stage_splits(facts.graph, facts.counts, theory.sizes.front().schedule);
  if (!leaves && splits.count() == 0) return;
  const Orders orders(facts.trace, theory, splits, usual_latency_ns(facts.graph));
  const std::vector<OrderSpans> spans = step_spans(facts.graph, theory, facts.counts, orders);
  const auto add = [&](Cause cause, double OrderSpans::* was, double OrderSpans::* would_be) {
    std::vector<double> lost;
    for (const OrderSpans& step : spans)
      if (!std::isnan(step.*was - step.*would_be)) lost.push_back(step.*was - step.*would_be);
    if (lost.empty()) return;
    cause.in_steps.all = lost.size();
    cause.price.lost_ns = mean_of(lost);
    cause.price.lost_error_ns = sample_std(lost) / std::sqrt(lost.size());
    out.push_back(std::move(cause));
  };
  if (leaves) add(order, &OrderSpans::own_ns, &OrderSpans::restored_ns);
  if (splits.count() == 0) return;
  Cause unsplit{.kind = &unsplit_cause};
  unsplit.figures.count = splits.count();
  unsplit.figures.of = splits.lacks.size();
  if (splits.count() == 1)
    unsplit.figures.stage = static_cast<int32_t>(std::ranges::find(splits.lacks, true) - splits.lacks.begin());
  add(unsplit, leaves ? &OrderSpans::restored_ns : &OrderSpans::own_ns, &OrderSpans::split_ns);
}

Telling tell_order(std::span<const Cause* const> causes, const TellContext& context) {
  Args args = context.args(*causes.front());
  const std::vector<Divergence>& divergences = context.recognition.divergences;
  Telling telling;
  if (divergences.empty()) {  // the recognition is another one than the cause's
    telling = say_cause("schedule.order", "schedule.order.lists", args);
  } else {
    const Divergence& worst = divergences.front();  // orders come first
    const int32_t rank = context.trace.parts[worst.part].rank;
    args.set("stage", int64_t{worst.stage}).set("step", int64_t{worst.step}).set("rank", int64_t{rank});
    telling = say_cause("schedule.order", "schedule.order", args.set("divergence", worst.sentence));
    telling.step = worst.step, telling.rank = rank;
  }
  telling.key = "order";
  telling.table = {"schedule", "divergence"};
  return telling;
}

}  // namespace stageline
