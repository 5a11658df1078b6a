#include "pipeline/replay/order_graph.h"

#include "model/intervals.h"

namespace stageline {
namespace {

// Kahn's algorithm over the lists of ranks. A list that cannot go on waits at the unit that it lacks, so every wait is
// looked at once. Where all lists wait, the unit that was recorded first goes on without what it lacks.
class Sorter {
 public:
  Sorter(const std::vector<OrderUnit>& units, const std::vector<uint32_t>& list_begin, const uint32_t* sequence)
      : units_(units), begin_(list_begin), sequence_(sequence), lists_(list_begin.size() - 1) {}

  // Runs what can run without leaving out any wait. Returns whether that is everything.
  bool sort(std::vector<uint32_t>& order) {
    order.clear();
    order.reserve(units_.size());
    done_.assign(units_.size(), 0);
    first_.assign(units_.size(), kNone);
    next_.assign(begin_.begin(), begin_.end() - 1);
    for (size_t l = 0; l < lists_; ++l) awake_.push_back(static_cast<uint32_t>(lists_ - 1 - l));
    drain(order);
    return order.size() == units_.size();
  }

  // Goes on after sort() has stopped; `units` must be those of this sorter. Returns how many waits were left out.
  int64_t break_circles(std::vector<OrderUnit>& units, std::vector<uint32_t>& order) {
    stalled_ = true;
    for (uint32_t l = 0; l < lists_; ++l)
      if (next_[l] < begin_[l + 1]) blocked_.emplace(units_[at(next_[l])].start_ns, l, at(next_[l]));
    int64_t broken = 0;
    while (!blocked_.empty()) {
      const auto [start, list, unit] = blocked_.top();
      blocked_.pop();
      if (next_[list] >= begin_[list + 1] || at(next_[list]) != unit) continue;  // the list has gone on since
      for (uint32_t& before : units[unit].after) {
        if (before == kNoUnit || done_[before]) continue;
        before = kNoUnit;
        ++broken;
      }
      awake_.push_back(list);
      drain(order);
    }
    return broken;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Waiter {  // one list in the queue of one unit
    uint32_t list, next;
  };
  uint32_t at(uint32_t place) const { return sequence_ ? sequence_[place] : place; }

  void drain(std::vector<uint32_t>& order) {
    while (!awake_.empty()) {
      const uint32_t list = awake_.back();
      awake_.pop_back();
      advance(list, order);
    }
  }

  void advance(uint32_t list, std::vector<uint32_t>& order) {
    for (uint32_t& place = next_[list]; place < begin_[list + 1]; ++place) {
      const uint32_t u = at(place);
      for (const uint32_t before : units_[u].after) {
        if (before == kNoUnit || done_[before]) continue;
        waiters_.push_back({list, first_[before]});
        first_[before] = static_cast<uint32_t>(waiters_.size() - 1);
        if (stalled_) blocked_.emplace(units_[u].start_ns, list, u);
        return;
      }
      done_[u] = 1;
      order.push_back(u);
      for (uint32_t w = first_[u]; w != kNone; w = waiters_[w].next) awake_.push_back(waiters_[w].list);
    }
  }

  const std::vector<OrderUnit>& units_;
  const std::vector<uint32_t>& begin_;
  const uint32_t* sequence_;
  size_t lists_;
  std::vector<uint8_t> done_;
  std::vector<uint32_t> first_;  // for each unit its first entry in waiters_
  std::vector<Waiter> waiters_;
  std::vector<uint32_t> next_, awake_;
  bool stalled_ = false;
  using Blocked = std::tuple<int64_t, uint32_t, uint32_t>;  // start, list, unit
  std::priority_queue<Blocked, std::vector<Blocked>, std::greater<>> blocked_;
};

}  // namespace

OrderGraphs::OrderGraphs(const Trace& trace, const RankLists& lists, ChunkLayout layout)
    : trace_(trace), lists_(lists), position_(list_positions(lists, trace.parts.size())) {
  shape_.sizes.stages = std::max(1, lists.stages);
  shape_.sizes.chunks = std::max(1, lists.chunks);
  shape_.layout = layout;
  ways_ = layout == ChunkLayout::kBidirectional ? 2 : 1;
  vstages_ = virtual_stage_count(shape_);
  if (trace.chunks_are_pieces) return;
  loss_of_ = loss_backwards(trace.cells);
  loss_cell_of_.assign(loss_of_.size(), kNoPair);
  for (uint32_t i = 0; i < loss_of_.size(); ++i)
    if (loss_of_[i] != kNoPair) loss_cell_of_[loss_of_[i]] = i;
}

void OrderGraphs::add_units(size_t l, uint32_t index, OrderGraph& graph) const {
  const RankList& list = lists_.lists[l];
  const Cells& cells = trace_.cells;
  int64_t covered = INT64_MIN;
  for (size_t t = list.begin; t < list.end; ++t) {
    const WorkToken& token = lists_.tokens[t];
    const size_t i = lists_.cell[t];
    OrderUnit unit{.token = static_cast<uint32_t>(t),
                   .list = index,
                   .kind = token.kind,
                   .chunk = std::max<int16_t>(token.chunk, 0)};
    int64_t start = cells.start_ns[i], end = cells.end_ns[i];
    double loss_ns = 0;
    const auto with_loss = [&](size_t cell) {
      if (!loss_cell_of_.empty() && loss_cell_of_[cell] != kNoPair)
        loss_ns +=
            std::max<int64_t>(0, between_ns(cells.start_ns[loss_cell_of_[cell]], cells.end_ns[loss_cell_of_[cell]]));
    };
    with_loss(i);
    if (token.fused && t + 1 < list.end && lists_.tokens[t + 1].fused) {
      const size_t j = lists_.cell[++t];
      start = std::min(start, cells.start_ns[j]);
      end = std::max(end, cells.end_ns[j]);
      unit.kind = CellKind::kForwardBackward;
      if (j != i) with_loss(j);
    }
    unit.start_ns = trace_.common_ns(list.part, start);
    unit.end_ns = std::max(unit.start_ns, trace_.common_ns(list.part, end));
    const int64_t from = std::max(unit.start_ns, covered);
    unit.own_ns = std::max<int64_t>(0, between_ns(from, unit.end_ns)) + loss_ns;
    graph.overlap_ns += std::max<int64_t>(0, between_ns(unit.start_ns, std::min(covered, unit.end_ns)));
    covered = std::max(covered, unit.end_ns);
    graph.start_ns = std::min(graph.start_ns, unit.start_ns);
    graph.end_ns = std::max(graph.end_ns, unit.end_ns);
    graph.units.push_back(unit);
  }
}

void OrderGraphs::add_waits(size_t first, size_t last, OrderGraph& graph) const {
  int32_t max_positions = 1, micro_batches = 1;
  for (size_t l = first; l < last; ++l) {
    max_positions = std::max(max_positions, position_[lists_.lists[l].part] + 1);
    micro_batches = std::max(micro_batches, lists_.lists[l].micro_batches);
  }
  const auto per_position = ways_ * static_cast<size_t>(vstages_);
  const size_t slots = static_cast<size_t>(max_positions) * 2 * micro_batches * per_position;
  // A table that would be far larger than the work means that the labels make no sense.
  if (slots > graph.units.size() * 64 + 4096) {
    graph.unnumbered += static_cast<int64_t>(graph.units.size());
    return;
  }
  std::vector<uint32_t> done(slots, kNoUnit);
  const auto slot = [&](bool backward, int32_t way, int32_t vstage, int32_t micro_batch, int32_t position) {
    return ((static_cast<size_t>(position) * 2 + (backward ? 1 : 0)) * micro_batches + micro_batch) * per_position +
           way * static_cast<size_t>(vstages_) + vstage;
  };
  const auto numbered = [&](const WorkToken& t) {
    return t.micro_batch >= 0 && t.micro_batch < micro_batches && t.chunk >= 0 && t.chunk < shape_.sizes.chunks;
  };
  const auto way_of = [&](const WorkToken& t) { return ways_ == 2 && t.chunk == 1 ? 1 : 0; };
  const auto each_token = [&](const auto& visit) {
    for (uint32_t u = 0; u < graph.units.size(); ++u) {
      const RankList& list = lists_.lists[first + graph.units[u].list];
      const size_t halves = graph.units[u].kind == CellKind::kForwardBackward ? 2 : 1;
      for (size_t h = 0; h < halves; ++h) visit(u, list, lists_.tokens[graph.units[u].token + h], h);
    }
  };
  each_token([&](uint32_t u, const RankList& list, const WorkToken& t, size_t) {
    if (!numbered(t) || t.kind == CellKind::kWeightGrad) return;
    done[slot(is_backward(t.kind), way_of(t), virtual_stage(shape_, list.stage, t.chunk), t.micro_batch,
              position_[list.part])] = u;
  });
  each_token([&](uint32_t u, const RankList& list, const WorkToken& t, size_t half) {
    if (!numbered(t)) {
      ++graph.unnumbered;
      return;
    }
    const int32_t vstage = virtual_stage(shape_, list.stage, t.chunk);
    bool backward = t.kind != CellKind::kForward;
    int32_t from = vstage;
    if (t.kind == CellKind::kForward) {
      from = vstage - 1;
    } else if (is_backward(t.kind)) {
      if (vstage + 1 < vstages_) from = vstage + 1;
      else backward = false;
    }
    if (from < 0) return;  // the first virtual stage waits for no other
    const int32_t position = position_[list.part];
    uint32_t producer = done[slot(backward, way_of(t), from, t.micro_batch, position)];
    // Where the other stage has fewer tensor-parallel peers, its first rank serves all.
    if (producer == kNoUnit && position > 0) producer = done[slot(backward, way_of(t), from, t.micro_batch, 0)];
    if (producer == kNoUnit) ++graph.without_producer;
    if (producer != u) graph.units[u].after[half] = producer;
  });
}

OrderGraph OrderGraphs::graph(size_t first, size_t last) const {
  OrderGraph graph{.start_ns = INT64_MAX, .end_ns = INT64_MIN};
  graph.units.reserve(lists_.lists[last - 1].end - lists_.lists[first].begin);
  for (size_t l = first; l < last; ++l) {
    graph.list_begin.push_back(static_cast<uint32_t>(graph.units.size()));
    add_units(l, static_cast<uint32_t>(l - first), graph);
  }
  graph.list_begin.push_back(static_cast<uint32_t>(graph.units.size()));
  add_waits(first, last, graph);
  Sorter sorter(graph.units, graph.list_begin, nullptr);
  if (!sorter.sort(graph.order)) graph.broken = sorter.break_circles(graph.units, graph.order);
  return graph;
}

bool reorder(const OrderGraph& graph, const std::vector<uint32_t>& sequence, std::vector<uint32_t>& order) {
  return Sorter(graph.units, graph.list_begin, sequence.data()).sort(order);
}

}  // namespace stageline
