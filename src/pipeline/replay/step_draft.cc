#include "pipeline/replay/step_draft.h"

#include "base/freed_memory.h"
#include "base/parallel.h"
#include "base/spares.h"
#include "pipeline/replay/problems.h"

namespace stageline {
namespace {

constexpr size_t kGraphBytes = 100;  // approximate bytes of a cell in a graph: 113 were measured for 16.8 million cells

// One step in its final order. Numbers count from the step's first operation.
struct OrderedStep {
  std::vector<uint32_t> wait_on;
  std::vector<GraphGroup> groups;
  int32_t step = 0;
  int64_t start_ns = 0, span_ns = 0;
  int64_t cut = 0, negative = 0;
};

// Holds facts about the operations of each type and each part.
struct OrderFacts {
  std::vector<uint8_t> communicates;  // for each type
  std::vector<uint32_t> pipeline_of;  // for each part the number of its replica
  uint32_t pipelines = 0;
};

struct UnitQueue {  // a pipeline's units that nothing holds back any more, linked by OrderSpace::next
  uint32_t first = UINT32_MAX, last = UINT32_MAX;
  bool waits = false;  // the pipeline is in `turns`
};

// Memory that is reused from step to step.
struct OrderSpace {
  StepDraft draft;
  std::vector<uint32_t> unit, member_begin, member;
  std::vector<uint32_t> wait_begin, wait_on, follower_begin, follower, pending;
  std::vector<uint32_t> next, turns;      // for each unit; and pipelines, some of them several times
  std::vector<UnitQueue> queues;          // for each pipeline
  std::vector<uint32_t> place, draft_at;  // where each operation of the draft is in the final order, and the reverse
  std::vector<int64_t> ends;              // in the final order, counted from the step's start
};

// A unit is a set of operations that proceed together: a group, or a single operation. Units are ordered by Kahn's
// algorithm. If units wait for each other in a circle, the one that started first goes on. With compute cells, one
// pipeline goes as far as it can before the next one does. So units that wait for each other are adjacent, in the cache
// and in the graph. It writes the columns of the graph from `base` on; waits, groups and their numbers count from the
// step's first operation.
class Orderer {
 public:
  Orderer(OrderSpace& space, const OrderFacts& facts, uint32_t base, StepGraph& graph)
      : draft_(space.draft), facts_(facts), grouped_(draft_.group_count > 0), base_(base), graph_(graph),
        unit_(space.unit), member_begin_(space.member_begin), member_(space.member), wait_begin_(space.wait_begin),
        wait_on_(space.wait_on), follower_begin_(space.follower_begin), follower_(space.follower),
        pending_(space.pending), next_(space.next), turns_(space.turns), queues_(space.queues), place_(space.place),
        draft_at_(space.draft_at), ends_(space.ends) {}

  OrderedStep order() {
    make_units();
    make_waits();
    sort_units();
    write_waits();
    write_columns();
    measure();
    out_.step = draft_.step;
    return std::move(out_);
  }

 private:
  uint32_t count() const { return static_cast<uint32_t>(draft_.ops.size()); }
  uint32_t unit_of(uint32_t op) const { return grouped_ ? unit_[op] : op; }
  uint32_t member_begin(uint32_t unit) const { return grouped_ ? member_begin_[unit] : unit; }
  uint32_t member(uint32_t at) const { return grouped_ ? member_[at] : at; }
  uint32_t group(uint32_t place) const { return graph_.group(base_ + place); }
  // Returns the end of the unit that begins at this place.
  uint32_t unit_end(uint32_t place) { return group(place) == kNoGroup ? place + 1 : out_.groups[group(place)].end; }

  void make_units() {
    units_ = count();
    if (!grouped_) return;
    unit_.assign(count(), 0);
    std::vector<uint32_t> of_group(draft_.group_count, kNoGroup);
    std::vector<uint32_t> size;
    for (uint32_t op = 0; op < count(); ++op) {
      const uint32_t g = draft_.group[op];
      if (g == kNoGroup || of_group[g] == kNoGroup) {
        unit_[op] = static_cast<uint32_t>(size.size());
        if (g != kNoGroup) of_group[g] = unit_[op];
        size.push_back(0);
      } else {
        unit_[op] = of_group[g];
      }
      ++size[unit_[op]];
    }
    units_ = static_cast<uint32_t>(size.size());
    member_begin_.assign(size.size() + 1, 0);
    std::partial_sum(size.begin(), size.end(), member_begin_.begin() + 1);
    member_.resize(count());
    std::vector<uint32_t> next(member_begin_.begin(), member_begin_.end() - 1);
    for (uint32_t op = 0; op < count(); ++op) member_[next[unit_[op]]++] = op;
  }

  // Makes two lists in compressed rows: what each operation waits for, and which operations wait for each unit.
  void make_waits() {
    wait_begin_.assign(count() + size_t{1}, 0);
    follower_begin_.assign(units_ + size_t{1}, 0);
    pending_.assign(units_, 0);
    for (const auto& [op, on] : draft_.waits) {
      if (unit_of(op) == unit_of(on)) {
        ++out_.cut;
        continue;
      }
      ++wait_begin_[op];
      ++follower_begin_[unit_of(on)];
      ++pending_[unit_of(op)];
    }
    // The sums are the ends of the rows; filling each row backwards turns them into its begin.
    std::partial_sum(wait_begin_.begin(), wait_begin_.end(), wait_begin_.begin());
    std::partial_sum(follower_begin_.begin(), follower_begin_.end(), follower_begin_.begin());
    wait_on_.resize(wait_begin_.back());
    follower_.resize(wait_begin_.back());
    for (size_t w = draft_.waits.size(); w-- > 0;) {
      const auto [op, on] = draft_.waits[w];
      if (unit_of(op) == unit_of(on)) continue;
      wait_on_[--wait_begin_[op]] = on;
      follower_[--follower_begin_[unit_of(on)]] = unit_of(op);
    }
  }

  void sort_units() {
    place_.assign(count(), UINT32_MAX);
    draft_at_.clear();
    draft_at_.reserve(count());
    turns_.clear();
    next_.assign(units_, kNoUnit);
    queues_.assign(facts_.pipelines, {});
    for (uint32_t u = 0; u < units_; ++u)
      if (pending_[u] == 0) enqueue(u);
    std::vector<uint32_t> oldest;  // made when there is a circle; the units that started last come first
    size_t turn = 0;
    for (uint32_t taken = 0; taken < units_;) {
      if (turn == turns_.size()) {  // a circle: a unit goes on without what it still waits for
        if (oldest.empty()) oldest = units_from_the_end();
        while (pending_[oldest.back()] == kQueued) oldest.pop_back();
        enqueue(oldest.back());
      }
      UnitQueue& own = queues_[turns_[turn++]];
      for (; own.first != kNoUnit; ++taken) {
        const uint32_t u = own.first;
        take(u);
        for (uint32_t f = follower_begin_[u]; f < follower_begin_[u + 1]; ++f) {
          uint32_t& pending = pending_[follower_[f]];
          if (pending != kQueued && --pending == 0) enqueue(follower_[f]);
        }
        own.first = next_[u];
      }
      own.waits = false;
    }
  }

  void enqueue(uint32_t unit) {
    pending_[unit] = kQueued;
    const uint32_t pipeline = facts_.pipeline_of[draft_.ops[member(member_begin(unit))].part];
    UnitQueue& queue = queues_[pipeline];
    (queue.first == kNoUnit ? queue.first : next_[queue.last]) = unit;
    queue.last = unit;
    if (!std::exchange(queue.waits, true)) turns_.push_back(pipeline);
  }

  std::vector<uint32_t> units_from_the_end() const {
    std::vector<std::pair<int64_t, uint32_t>> starts(units_);
    for (uint32_t u = 0; u < starts.size(); ++u) {
      starts[u] = {INT64_MAX, u};
      for (uint32_t m = member_begin(u); m < member_begin(u + 1); ++m)
        starts[u].first = std::min(starts[u].first, draft_.ops[member(m)].start_ns);
    }
    std::ranges::sort(starts);
    std::vector<uint32_t> units;
    for (size_t i = starts.size(); i-- > 0;) units.push_back(starts[i].second);
    return units;
  }

  void take(uint32_t u) {
    const uint32_t size = member_begin(u + 1) - member_begin(u);
    const auto begin = static_cast<uint32_t>(draft_at_.size());
    if (size > 1) out_.groups.push_back({begin, begin + size});
    for (uint32_t m = member_begin(u); m < member_begin(u + 1); ++m) {
      const auto place = static_cast<uint32_t>(draft_at_.size());
      place_[member(m)] = place;
      draft_at_.push_back(member(m));
      if (grouped_)
        graph_.group_of[base_ + place] = size > 1 ? static_cast<uint32_t>(out_.groups.size() - 1) : kNoGroup;
    }
  }

  // Writes the waits in the new numbers, ascending, each once. Waits that point forward close a circle and are cut.
  void write_waits() {
    uint32_t* const begins = graph_.wait_begin.data() + base_;
    out_.wait_on.reserve(wait_on_.size());
    for (uint32_t i = 0; i < count(); ++i) {
      begins[i] = static_cast<uint32_t>(out_.wait_on.size());
      const uint32_t op = draft_at_[i];
      const uint32_t unit_begin = group(i) == kNoGroup ? i : out_.groups[group(i)].begin;
      for (uint32_t w = wait_begin_[op]; w < wait_begin_[op + 1]; ++w) {
        const uint32_t on = place_[wait_on_[w]];
        if (on < unit_begin) out_.wait_on.push_back(on);
        else ++out_.cut;
      }
      if (out_.wait_on.size() - begins[i] < 2) continue;
      const auto begin = out_.wait_on.begin() + begins[i];
      std::sort(begin, out_.wait_on.end());
      out_.wait_on.erase(std::unique(begin, out_.wait_on.end()), out_.wait_on.end());
    }
  }

  void write_columns() {
    int64_t start = INT64_MAX, end = INT64_MIN;
    for (const DraftOp& op : draft_.ops) {
      start = std::min(start, op.start_ns);
      if (graph_.closes_of[op.type]) end = std::max(end, op.end_ns);
    }
    out_.start_ns = start;
    ends_.resize(count());
    out_.span_ns = std::max<int64_t>(end - start, 0);
    for (uint32_t k = 0; k < count(); ++k) {
      const DraftOp& op = draft_.ops[draft_at_[k]];
      const size_t i = base_ + size_t{k};
      graph_.cell[i] = op.cell;
      graph_.type[i] = op.type;
      graph_.kind[i] = op.kind;
      graph_.part[i] = op.part;
      graph_.chunk[i] = op.chunk;
      graph_.micro_batch[i] = op.micro_batch;
      graph_.start_ns[i] = op.start_ns - start;
      ends_[k] = op.end_ns - start;
    }
    if (!graph_.stored_end_ns.empty()) std::ranges::copy(ends_, graph_.stored_end_ns.begin() + base_);
  }

  void measure() {
    const int64_t* const starts = graph_.start_ns.data() + base_;
    const int64_t* const ends = ends_.data();
    const uint32_t* const begins = graph_.wait_begin.data() + base_;
    double* const durations = graph_.dur_ns.data() + base_;
    double* const delays = graph_.delay_ns.data() + base_;
    const auto at_least = [&](double value) {
      if (value > StepGraph::kMinNs) return value;
      ++out_.negative;
      return 0.0;
    };
    for (uint32_t i = 0; i < count();) {
      const uint32_t last = unit_end(i);
      int64_t latest = INT64_MIN;
      for (uint32_t k = i; k < last; ++k) latest = std::max(latest, starts[k]);
      for (uint32_t k = i; k < last; ++k) {
        const size_t waits_end = k + 1 < count() ? begins[k + 1] : out_.wait_on.size();
        int64_t ready = begins[k] == waits_end ? 0 : INT64_MIN;
        for (size_t w = begins[k]; w < waits_end; ++w) ready = std::max(ready, ends[out_.wait_on[w]]);
        durations[k] = at_least(ends[k] - latest);
        // Messages and collectives are posted early and wait within their own time, so an early start is not a flaw to
        // report. Where a collective starts during a cell, its delay is below 0: the distance to the end of that cell.
        const double delay = starts[k] - ready;
        const bool beside = graph_.source == GraphSource::kComputeCells && graph_.cell[base_ + k] != kNoCell;
        if (communicates(k) && !(delay > StepGraph::kMinNs)) delays[k] = beside ? delay : 0;
        else delays[k] = at_least(delay);
      }
      if (last - i > 1) one_transfer(i, last, latest);
      i = last;
    }
  }

  bool communicates(uint32_t place) const { return facts_.communicates[graph_.type[base_ + place]] != 0; }

  // Handles a message or collective that is stamped as one transfer on all its members. Members that arrived first
  // waited in unrecorded time, so only the smallest of the delays can be a launch delay, and the others are set to 0.
  // This does not apply if a member's timestamps show its waiting, since such a member starts earlier.
  void one_transfer(uint32_t begin, uint32_t end, int64_t latest) {
    double* const delays = graph_.delay_ns.data() + base_;
    uint32_t min = begin;
    for (uint32_t k = begin; k < end; ++k) {
      if (!communicates(k) || latest - graph_.start_ns[base_ + k] > kSameNs) return;
      if (delays[k] < delays[min]) min = k;
    }
    for (uint32_t k = begin; k < end; ++k)
      if (k != min) delays[k] = std::min(delays[k], 0.0);
  }

  static constexpr uint32_t kQueued = UINT32_MAX;  // in pending_: nothing holds the unit back any more
  static constexpr uint32_t kNoUnit = UINT32_MAX;

  const StepDraft& draft_;
  const OrderFacts& facts_;
  const bool grouped_;  // when false, every operation is its own unit, with the same number
  const uint32_t base_;
  StepGraph& graph_;
  OrderedStep out_;
  uint32_t units_ = 0;
  std::vector<uint32_t>&unit_, &member_begin_, &member_;
  std::vector<uint32_t>&wait_begin_, &wait_on_, &follower_begin_, &follower_, &pending_;
  std::vector<uint32_t>&next_, &turns_;
  std::vector<UnitQueue>& queues_;
  std::vector<uint32_t>&place_, &draft_at_;
  std::vector<int64_t>& ends_;
};

// Returns for each part its operation that ends last, among work and collectives that begin before `until_ns`.
std::map<int32_t, uint32_t> last_operations(const StepDraft& draft, int64_t until_ns) {
  std::map<int32_t, uint32_t> last;
  for (uint32_t k = 0; k < draft.ops.size(); ++k) {
    const DraftOp& op = draft.ops[k];
    if (!is_compute(op.kind) && (op.kind != CellKind::kCollective || op.start_ns >= until_ns)) continue;
    const auto [at, fresh] = last.try_emplace(op.part, k);
    if (!fresh && op.end_ns >= draft.ops[at->second].end_ns) at->second = k;
  }
  return last;
}

// Describes the ranks and types of a graph without operations, and what ordering the operations needs of them.
OrderFacts describe_ranks(const Trace& trace, StepGraph& graph) {
  OrderFacts facts;
  graph.stage_count = graph.dp_count = 1;
  std::map<int32_t, uint32_t> pipelines;
  for (const Part& part : trace.parts) {
    graph.stage_count = std::max(graph.stage_count, part.stage + 1);
    graph.dp_count = std::max(graph.dp_count, part.dp + 1);
    graph.stage_of.push_back(part.stage);
    graph.dp_of.push_back(part.dp);
    // Recorded collectives connect the pipelines, so all are ordered as one.
    const int32_t pipeline = graph.source == GraphSource::kComputeCells ? part.dp : 0;
    facts.pipeline_of.push_back(pipelines.try_emplace(pipeline, pipelines.size()).first->second);
  }
  for (const GraphType& type : graph.types) {
    graph.closes_of.push_back(is_message(type.kind) ? 0 : 1);
    facts.communicates.push_back(type.communicates ? 1 : 0);
  }
  facts.pipelines = static_cast<uint32_t>(pipelines.size());
  if (std::ranges::find(graph.closes_of, 1) == graph.closes_of.end()) graph.closes_of.assign(graph.types.size(), 1);
  return facts;
}

// Makes room for n operations. For a large run this is gigabytes, which the kernel clears page by page, so columns are
// made in parallel.
void make_columns(size_t n, bool grouped, StepGraph& graph) {
  const bool ends_differ = grouped || graph.source != GraphSource::kComputeCells;
  const std::initializer_list<std::function<void()>> columns = {
      [&] { graph.cell.resize(n); },
      [&] { graph.part.resize(n); },
      [&] { graph.chunk.resize(n); },
      [&] { graph.micro_batch.resize(n); },
      [&] { graph.wait_begin.resize(n + 1); },
      [&] { graph.start_ns.resize(n); },
      [&] { graph.stored_end_ns.resize(ends_differ ? n : 0); },
      [&] { graph.dur_ns.resize(n); },
      [&] { graph.delay_ns.resize(n); },
      [&] { graph.type.resize(n); },
      [&] { graph.kind.resize(n); },
      [&] { graph.group_of.assign(grouped ? n : 0, kNoGroup); }};
  parallel_for(columns.size(), [&](size_t c) { columns.begin()[c](); });
}

// Joins what the steps, ordered one by one, say of their waits and groups. Step s begins with operation base[s].
void join_steps(std::vector<OrderedStep>& ordered, const std::vector<uint32_t>& base, StepGraph& graph) {
  const size_t steps = ordered.size();
  std::vector<uint32_t> wait_base(steps + 1, 0), group_base(steps + 1, 0);
  for (size_t s = 0; s < steps; ++s) {
    wait_base[s + 1] = wait_base[s] + static_cast<uint32_t>(ordered[s].wait_on.size());
    group_base[s + 1] = group_base[s] + static_cast<uint32_t>(ordered[s].groups.size());
    graph.steps.push_back({ordered[s].step, base[s], base[s + 1], ordered[s].start_ns, ordered[s].span_ns});
  }
  graph.wait_begin[base.back()] = wait_base.back();
  graph.wait_on.resize(wait_base.back());
  graph.groups.resize(group_base.back());
  parallel_for(steps, [&](size_t s) {
    OrderedStep& step = ordered[s];
    for (size_t i = base[s]; i < base[s + 1]; ++i) {
      graph.wait_begin[i] += wait_base[s];
      if (graph.group(i) != kNoGroup) graph.group_of[i] += group_base[s];
    }
    for (size_t w = 0; w < step.wait_on.size(); ++w) graph.wait_on[wait_base[s] + w] = base[s] + step.wait_on[w];
    for (size_t g = 0; g < step.groups.size(); ++g)
      graph.groups[group_base[s] + g] = {base[s] + step.groups[g].begin, base[s] + step.groups[g].end};
    std::vector<uint32_t>().swap(step.wait_on);
  });
}

}  // namespace

GraphType gradients_type() { return {"gradients, all ranks", CellKind::kCollective, true}; }

int64_t same_moment_ns(const Trace& trace) {
  constexpr double kErrors = 3;  // standard errors
  const ClockSummary clocks = clock_summary(trace);
  return trace.alignment == AlignState::kMapped ? std::max<int64_t>(kSameNs, std::llround(kErrors * clocks.error_ns))
                                                : kSameNs;
}

bool gradients_together(StepDraft& draft, uint16_t type, int64_t same_ns) {
  int64_t first_start = INT64_MAX;
  std::vector<uint32_t> optimizers;
  for (uint32_t k = 0; k < draft.ops.size(); ++k)
    if (draft.ops[k].kind == CellKind::kOptimizer) {
      optimizers.push_back(k);
      first_start = std::min(first_start, draft.ops[k].start_ns);
    }
  if (optimizers.size() < 2) return false;
  for (const bool collectives : {true, false}) {
    // Parameters that are gathered after the first optimizer hold none of them up.
    const std::map<int32_t, uint32_t> last = last_operations(draft, collectives ? first_start : INT64_MIN);
    int64_t last_end = INT64_MIN;
    int32_t part = kUnknown;  // the rank that is last
    for (const auto& [number, op] : last)
      if (draft.ops[op].end_ns >= last_end) last_end = draft.ops[op].end_ns, part = number;
    if (last.size() < 2 || first_start + same_ns < last_end) continue;
    last_end = std::min(last_end, first_start);
    const auto together = static_cast<uint32_t>(draft.ops.size());
    draft.ops.push_back({kNoCell, type, CellKind::kCollective, part, kUnknown, kUnknown, last_end, first_start});
    draft.group.push_back(kNoGroup);
    for (const auto& [number, op] : last) draft.wait(together, op);
    if (collectives)  // one that is over sooner does not end the cells that run in parallel
      for (const auto& [number, op] : last_operations(draft, INT64_MIN))
        if (last.at(number) != op) draft.wait(together, op);
    for (const uint32_t op : optimizers) draft.wait(op, together);
    return true;
  }
  return false;
}

std::vector<int32_t> peer_positions(const Trace& trace) {
  std::vector<int32_t> position(trace.parts.size());
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;
  for (size_t p = 0; p < trace.parts.size(); ++p) position[p] = seen[{trace.parts[p].dp, trace.parts[p].stage}]++;
  return position;
}

StepGraph assemble_graph(const Trace& trace, StepDrafts drafts, GraphSource source, Diagnostics& notes) {
  StepGraph graph{.source = source, .messages_recorded = drafts.messages_recorded, .types = std::move(drafts.types)};
  const OrderFacts facts = describe_ranks(trace, graph);
  const size_t steps = drafts.op_count.size();
  std::vector<uint32_t> base(steps + 1, 0);
  std::partial_sum(drafts.op_count.begin(), drafts.op_count.end(), base.begin() + 1);
  make_columns(base.back(), drafts.grouped, graph);
  std::vector<OrderedStep> ordered(steps);
  auto spaces = std::make_unique<Spares<OrderSpace>>();
  parallel_for(steps, [&](size_t s) {
    const Spares<OrderSpace>::Lent space(*spaces);
    space->draft.clear();
    drafts.make(s, space->draft);
    ordered[s] = Orderer(*space, facts, base[s], graph).order();
  });

  drafts.make = nullptr;
  spaces.reset();
  return_much_freed_memory(trace.cells.size() * kGraphBytes);
  join_steps(ordered, base, graph);
  const auto cut = sum_over<int64_t>(ordered, &OrderedStep::cut);
  const auto negative = sum_over<int64_t>(ordered, &OrderedStep::negative);
  std::vector<OrderedStep>().swap(ordered);
  return_much_freed_memory(trace.cells.size() * kGraphBytes);
  notes.add(problem::graph_cut_waits, {}, cut);
  notes.add(problem::graph_negative_times, {}, negative);
  return graph;
}

}  // namespace stageline
