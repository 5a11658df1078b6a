#include "pipeline/step_draft.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "base/parallel.h"

namespace stageline {
namespace {

// One step in its final order; numbers count from the step's first operation.
struct OrderedStep {
  std::vector<uint32_t> draft;  // place in the draft, by place in the order
  std::vector<uint32_t> wait_begin, wait_on;
  std::vector<GraphGroup> groups;
  std::vector<uint32_t> group;  // by place in the order
  std::vector<double> dur_ns, delay_ns;
  int64_t start_ns = 0, span_ns = 0;
  int64_t cut = 0, negative = 0;
};

// Units proceed together: a group, or an operation of its own. Kahn's algorithm over units; where they wait for each
// other in a circle, the one that started first goes on.
class Orderer {
 public:
  Orderer(const StepDraft& draft, const std::vector<uint8_t>& closes, const std::vector<uint8_t>& communicates)
      : draft_(draft), closes_(closes), communicates_(communicates) {}

  OrderedStep order() {
    make_units();
    make_waits();
    sort_units();
    write_waits();
    measure();
    return std::move(out_);
  }

 private:
  size_t count() const { return draft_.ops.size(); }

  void make_units() {
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
    member_begin_.assign(size.size() + 1, 0);
    std::partial_sum(size.begin(), size.end(), member_begin_.begin() + 1);
    member_.resize(count());
    std::vector<uint32_t> next(member_begin_.begin(), member_begin_.end() - 1);
    for (uint32_t op = 0; op < count(); ++op) member_[next[unit_[op]]++] = op;
  }

  // Waits by operation (CSR), and who waits for a unit.
  void make_waits() {
    wait_begin_.assign(count() + 1, 0);
    std::vector<uint32_t> followers(member_begin_.size(), 0);
    for (const auto& [op, on] : draft_.waits) {
      if (unit_[op] == unit_[on]) {
        ++out_.cut;
        continue;
      }
      ++wait_begin_[op + 1];
      ++followers[unit_[on] + 1];
    }
    std::partial_sum(wait_begin_.begin(), wait_begin_.end(), wait_begin_.begin());
    std::partial_sum(followers.begin(), followers.end(), followers.begin());
    follower_begin_ = followers;
    wait_on_.resize(wait_begin_.back());
    follower_.resize(wait_begin_.back());
    pending_.assign(member_begin_.size() - 1, 0);
    std::vector<uint32_t> next(wait_begin_.begin(), wait_begin_.end() - 1);
    for (const auto& [op, on] : draft_.waits) {
      if (unit_[op] == unit_[on]) continue;
      wait_on_[next[op]++] = on;
      follower_[followers[unit_[on]]++] = unit_[op];
      ++pending_[unit_[op]];
    }
  }

  void sort_units() {
    const auto units = static_cast<uint32_t>(pending_.size());
    place_.assign(count(), UINT32_MAX);
    out_.draft.reserve(count());
    out_.group.reserve(count());
    std::vector<uint32_t> queue;
    queue.reserve(units);
    std::vector<bool> queued(units, false);
    for (uint32_t u = 0; u < units; ++u)
      if (pending_[u] == 0) {
        queue.push_back(u);
        queued[u] = true;
      }
    std::vector<uint32_t> oldest;  // made when there is a circle: those that started last first
    for (size_t head = 0; head < units; ++head) {
      if (head == queue.size()) {  // a circle: a unit goes on without what it still waits for
        if (oldest.empty()) oldest = units_from_the_end();
        while (queued[oldest.back()]) oldest.pop_back();
        queue.push_back(oldest.back());
        queued[oldest.back()] = true;
      }
      const uint32_t u = queue[head];
      take(u);
      for (uint32_t f = follower_begin_[u]; f < follower_begin_[u + 1]; ++f)
        if (--pending_[follower_[f]] == 0 && !queued[follower_[f]]) {
          queue.push_back(follower_[f]);
          queued[follower_[f]] = true;
        }
    }
  }

  std::vector<uint32_t> units_from_the_end() const {
    std::vector<std::pair<int64_t, uint32_t>> starts(pending_.size());
    for (uint32_t u = 0; u < starts.size(); ++u) {
      starts[u] = {INT64_MAX, u};
      for (uint32_t m = member_begin_[u]; m < member_begin_[u + 1]; ++m)
        starts[u].first = std::min(starts[u].first, draft_.ops[member_[m]].start_ns);
    }
    std::sort(starts.begin(), starts.end());
    std::vector<uint32_t> units;
    for (size_t i = starts.size(); i-- > 0;) units.push_back(starts[i].second);
    return units;
  }

  void take(uint32_t u) {
    const uint32_t size = member_begin_[u + 1] - member_begin_[u];
    const auto begin = static_cast<uint32_t>(out_.draft.size());
    if (size > 1) out_.groups.push_back({begin, begin + size});
    for (uint32_t m = member_begin_[u]; m < member_begin_[u + 1]; ++m) {
      place_[member_[m]] = static_cast<uint32_t>(out_.draft.size());
      out_.draft.push_back(member_[m]);
      out_.group.push_back(size > 1 ? static_cast<uint32_t>(out_.groups.size() - 1) : kNoGroup);
    }
  }

  // Waits in the new numbers, ascending, each once; those that point forward close a circle and are cut.
  void write_waits() {
    out_.wait_begin.assign(1, 0);
    out_.wait_begin.reserve(count() + 1);
    out_.wait_on.reserve(wait_on_.size());
    for (uint32_t i = 0; i < count(); ++i) {
      const uint32_t op = out_.draft[i];
      const size_t first = out_.wait_on.size();
      const uint32_t unit_begin = out_.group[i] == kNoGroup ? i : out_.groups[out_.group[i]].begin;
      for (uint32_t w = wait_begin_[op]; w < wait_begin_[op + 1]; ++w) {
        const uint32_t on = place_[wait_on_[w]];
        if (on < unit_begin) {
          out_.wait_on.push_back(on);
        } else {
          ++out_.cut;
        }
      }
      const auto begin = out_.wait_on.begin() + static_cast<std::ptrdiff_t>(first);
      std::sort(begin, out_.wait_on.end());
      out_.wait_on.erase(std::unique(begin, out_.wait_on.end()), out_.wait_on.end());
      out_.wait_begin.push_back(static_cast<uint32_t>(out_.wait_on.size()));
    }
  }

  void measure() {
    const std::vector<DraftOp>& ops = draft_.ops;
    int64_t start = INT64_MAX, end = INT64_MIN;
    for (const DraftOp& op : ops) {
      start = std::min(start, op.start_ns);
      if (closes_[op.type]) end = std::max(end, op.end_ns);
    }
    out_.start_ns = start;
    out_.span_ns = std::max<int64_t>(end - start, 0);
    out_.dur_ns.resize(count());
    out_.delay_ns.resize(count());
    const auto at_least = [&](double value) {
      if (value > StepGraph::kLeastNs) return value;
      ++out_.negative;
      return 0.0;
    };
    for (uint32_t i = 0; i < count();) {
      const uint32_t last = out_.group[i] == kNoGroup ? i + 1 : out_.groups[out_.group[i]].end;
      int64_t latest = INT64_MIN;
      for (uint32_t k = i; k < last; ++k) latest = std::max(latest, ops[out_.draft[k]].start_ns);
      for (uint32_t k = i; k < last; ++k) {
        const DraftOp& op = ops[out_.draft[k]];
        int64_t ready = out_.wait_begin[k] == out_.wait_begin[k + 1] ? start : INT64_MIN;
        for (uint32_t w = out_.wait_begin[k]; w < out_.wait_begin[k + 1]; ++w)
          ready = std::max(ready, ops[out_.draft[out_.wait_on[w]]].end_ns);
        out_.dur_ns[k] = at_least(static_cast<double>(op.end_ns - latest));
        // Messages and collectives are posted early, and wait in their own time: that is no flaw to speak of.
        const auto delay = static_cast<double>(op.start_ns - ready);
        out_.delay_ns[k] = communicates_[op.type] && !(delay > StepGraph::kLeastNs) ? 0 : at_least(delay);
      }
      if (last - i > 1) one_transfer(i, last, latest);
      i = last;
    }
  }

  // A message or collective stamped as one transfer at all its ends: who was there first waited in time that nobody
  // recorded, so only the shortest way from being ready to the start can be a launch delay. An end that shows its own
  // waiting starts earlier.
  void one_transfer(uint32_t begin, uint32_t end, int64_t latest) {
    uint32_t least = begin;
    for (uint32_t k = begin; k < end; ++k) {
      const DraftOp& op = draft_.ops[out_.draft[k]];
      if (!communicates_[op.type] || latest - op.start_ns > kSameNs) return;
      if (out_.delay_ns[k] < out_.delay_ns[least]) least = k;
    }
    for (uint32_t k = begin; k < end; ++k)
      if (k != least) out_.delay_ns[k] = 0;
  }

  const StepDraft& draft_;
  const std::vector<uint8_t>&closes_, &communicates_;  // by type
  OrderedStep out_;
  std::vector<uint32_t> unit_, member_begin_, member_;
  std::vector<uint32_t> wait_begin_, wait_on_, follower_begin_, follower_, pending_, place_;
};

// By part its operation that ends last, of work and, where asked, collectives.
std::map<int32_t, uint32_t> last_operations(const StepDraft& draft, bool collectives) {
  std::map<int32_t, uint32_t> last;
  for (uint32_t k = 0; k < draft.ops.size(); ++k) {
    const DraftOp& op = draft.ops[k];
    if (!is_compute(op.kind) && !(collectives && op.kind == CellKind::kCollective)) continue;
    const auto [at, fresh] = last.try_emplace(op.part, k);
    if (!fresh && op.end_ns >= draft.ops[at->second].end_ns) at->second = k;
  }
  return last;
}

}  // namespace

void gradients_together(std::vector<StepDraft>& drafts, std::vector<GraphType>& types) {
  std::optional<uint16_t> type;
  for (StepDraft& draft : drafts) {
    int64_t first_start = INT64_MAX;
    std::vector<uint32_t> optimizers;
    for (uint32_t k = 0; k < draft.ops.size(); ++k)
      if (draft.ops[k].kind == CellKind::kOptimizer) {
        optimizers.push_back(k);
        first_start = std::min(first_start, draft.ops[k].start_ns);
      }
    if (optimizers.size() < 2) continue;
    for (const bool collectives : {true, false}) {
      const std::map<int32_t, uint32_t> last = last_operations(draft, collectives);
      int64_t last_end = INT64_MIN;
      int32_t part = kUnknown;  // of the rank that is last
      for (const auto& [number, op] : last)
        if (draft.ops[op].end_ns >= last_end) last_end = draft.ops[op].end_ns, part = number;
      if (last.size() < 2 || first_start < last_end) continue;
      if (!type) {
        type = static_cast<uint16_t>(types.size());
        types.push_back({"gradients, all ranks", CellKind::kCollective, true});
      }
      const auto together = static_cast<uint32_t>(draft.ops.size());
      draft.ops.push_back({kNoCell, *type, CellKind::kCollective, part, kUnknown, kUnknown, last_end, first_start});
      draft.group.push_back(kNoGroup);
      for (const auto& [number, op] : last) draft.wait(together, op);
      for (const uint32_t op : optimizers) draft.wait(op, together);
      break;
    }
  }
}

std::vector<int32_t> peer_positions(const Trace& trace) {
  std::vector<int32_t> position(trace.parts.size());
  std::map<std::pair<int32_t, int32_t>, int32_t> seen;
  for (size_t p = 0; p < trace.parts.size(); ++p) position[p] = seen[{trace.parts[p].dp, trace.parts[p].stage}]++;
  return position;
}

StepGraph assemble_graph(const Trace& trace, std::vector<StepDraft> drafts, std::vector<GraphType> types,
                         GraphSource source, Diagnostics& notes) {
  StepGraph graph;
  graph.source = source;
  graph.stage_count = graph.dp_count = 1;
  for (const Part& part : trace.parts) {
    graph.stage_count = std::max(graph.stage_count, part.stage + 1);
    graph.dp_count = std::max(graph.dp_count, part.dp + 1);
  }
  std::vector<uint8_t> closes(types.size(), 0), communicates(types.size(), 0);
  for (size_t t = 0; t < types.size(); ++t) {
    closes[t] = is_message(types[t].kind) ? 0 : 1;
    communicates[t] = types[t].communicates ? 1 : 0;
  }
  if (std::find(closes.begin(), closes.end(), 1) == closes.end()) closes.assign(types.size(), 1);

  std::vector<OrderedStep> ordered(drafts.size());
  parallel_for(drafts.size(), [&](size_t s) {
    ordered[s] = Orderer(drafts[s], closes, communicates).order();
    drafts[s].waits = {};
  });

  std::vector<uint32_t> op_base(drafts.size() + 1, 0), wait_base(drafts.size() + 1, 0),
      group_base(drafts.size() + 1, 0);
  int64_t cut = 0, negative = 0;
  for (size_t s = 0; s < drafts.size(); ++s) {
    op_base[s + 1] = op_base[s] + static_cast<uint32_t>(drafts[s].ops.size());
    wait_base[s + 1] = wait_base[s] + static_cast<uint32_t>(ordered[s].wait_on.size());
    group_base[s + 1] = group_base[s] + static_cast<uint32_t>(ordered[s].groups.size());
    graph.steps.push_back({drafts[s].step, op_base[s], op_base[s + 1], ordered[s].start_ns, ordered[s].span_ns});
    cut += ordered[s].cut;
    negative += ordered[s].negative;
  }
  const size_t n = op_base.back();
  graph.cell.resize(n);
  graph.type.resize(n);
  graph.kind.resize(n);
  graph.part.resize(n);
  graph.stage.resize(n);
  graph.dp.resize(n);
  graph.chunk.resize(n);
  graph.micro_batch.resize(n);
  graph.group.resize(n);
  graph.closes.resize(n);
  graph.start_ns.resize(n);
  graph.end_ns.resize(n);
  graph.dur_ns.resize(n);
  graph.delay_ns.resize(n);
  graph.wait_begin.assign(n + 1, wait_base.back());
  graph.wait_on.resize(wait_base.back());
  graph.groups.resize(group_base.back());
  parallel_for(drafts.size(), [&](size_t s) {
    const OrderedStep& step = ordered[s];
    for (uint32_t k = 0; k < step.draft.size(); ++k) {
      const DraftOp& op = drafts[s].ops[step.draft[k]];
      const Part& part = trace.parts[static_cast<size_t>(op.part)];
      const size_t i = op_base[s] + k;
      graph.cell[i] = op.cell;
      graph.type[i] = op.type;
      graph.kind[i] = op.kind;
      graph.part[i] = op.part;
      graph.stage[i] = part.stage;
      graph.dp[i] = part.dp;
      graph.chunk[i] = op.chunk;
      graph.micro_batch[i] = op.micro_batch;
      graph.group[i] = step.group[k] == kNoGroup ? kNoGroup : group_base[s] + step.group[k];
      graph.closes[i] = closes[op.type];
      graph.start_ns[i] = op.start_ns - step.start_ns;
      graph.end_ns[i] = op.end_ns - step.start_ns;
      graph.dur_ns[i] = step.dur_ns[k];
      graph.delay_ns[i] = step.delay_ns[k];
      graph.wait_begin[i] = wait_base[s] + step.wait_begin[k];
    }
    for (size_t w = 0; w < step.wait_on.size(); ++w) graph.wait_on[wait_base[s] + w] = op_base[s] + step.wait_on[w];
    for (size_t g = 0; g < step.groups.size(); ++g)
      graph.groups[group_base[s] + g] = {op_base[s] + step.groups[g].begin, op_base[s] + step.groups[g].end};
  });
  graph.types = std::move(types);
  if (cut > 0)
    notes.add("graph.cut_waits", Severity::kWarning,
              "operations that wait for each other in a circle were taken in the order in which they started", {}, cut);
  if (negative > 0)
    notes.add("graph.negative_times", Severity::kWarning,
              "work that starts more than 10 ms before what it waits for has ended, or messages that end before they "
              "begin, were "
              "taken to wait for nothing and to take no time: clocks or stamps are off",
              {}, negative);
  return graph;
}

}  // namespace stageline
