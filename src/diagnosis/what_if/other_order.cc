#include "diagnosis/what_if/other_order.h"

#include "base/error_words.h"
#include "pipeline/measure/op_values.h"

namespace stageline {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Most of one cell's cost that embedding or head may take: however fast the cell becomes, its layers keep something.
constexpr double kMaxConstant = 0.95;
// Returns true when a chunk of a micro-batch runs on a rank: with two directions, it takes one of the two chunks.
bool runs_here(const Schedule& schedule, int32_t chunk, int32_t micro_batch) {
  if (schedule.layout != ChunkLayout::kBidirectional) return true;
  return chunk == (micro_batch < schedule.sizes.micro_batches / 2 ? 0 : 1);
}

}  // namespace

int32_t OrderModel::virtual_stage_of(int32_t stage, int32_t chunk) const {
  return virtual_stage(present_.schedule, stage, std::clamp(chunk, 0, std::max(0, sizes_.chunks - 1)));
}

OrderModel OrderModel::of(const Trace& trace, const StepGraph& graph, Recognition recognition,
                          const RankLists* known_lists) {
  OrderModel model;
  model.recognition_ = std::move(recognition);
  const Recognition& r = model.recognition_;
  if (!r.recognised) {
    model.why_not_ = why_not_recognised(r);
    return model;
  }
  if (trace.chunks_are_pieces) {
    model.why_not_ = words("unknown.pieces");
    return model;
  }
  const ScheduleCandidate& best = r.best();
  model.sizes_ = best.sizes;
  model.layout_ = best.layout;
  Result<OrderPlan> present = compile_order(best.name, best.sizes);
  if (!present) {
    model.why_not_ = error_text(present.error());
    return model;
  }
  model.present_ = std::move(*present);
  const bool listed = known_lists && !known_lists->lists.empty();
  const RankLists made_lists = listed ? RankLists{} : rank_lists(trace, r.rule);
  const RankLists& lists = listed ? *known_lists : made_lists;
  if (std::any_of(r.divergences.begin(), r.divergences.end(), [](const Divergence& d) { return d.is_order; }))
    if (std::optional<OrderPlan> plan = compile_as_it_ran(lists, best.name, best.sizes)) {
      model.present_ = std::move(*plan);
      model.left_ = true;
    }
  model.collect(lists, graph, trace.cells.size());
  if (model.pipelines_.empty()) model.why_not_ = words("order.incomplete", Args().set("schedule", best.name));
  else model.measure(graph);
  return model;
}

// Steps with a pipeline that is not whole are left out: their time in another order would be that of fewer cells.
void OrderModel::collect(const RankLists& lists, const StepGraph& graph, size_t cells) {
  std::vector<uint32_t> op_of(cells, kNoCell);
  OpBlocks(graph.size(), 0).each([&](size_t, uint32_t op) {
    if (graph.cell[op] != kNoCell && is_compute(graph.kind[op])) op_of[graph.cell[op]] = op;
  });
  std::map<int32_t, uint32_t> step_index;
  for (uint32_t s = 0; s < graph.steps.size(); ++s) step_index[graph.steps[s].step] = s;
  std::vector<uint8_t> broken(graph.steps.size(), 0);  // some replica of the step is not whole
  for (size_t first = 0; first < lists.lists.size();) {
    const size_t begin = std::exchange(first, lists.group_end(first));
    const auto step = step_index.find(lists.lists[begin].step);
    if (step == step_index.end()) continue;
    const std::optional<std::vector<size_t>> slots = fill_slots(lists, begin, first, op_of);
    const auto is_whole = [&](size_t of) {
      return add_pipeline({step->second, lists.lists[begin].dp, of, kInfinity}, graph);
    };
    if (!slots || !std::ranges::all_of(*slots, is_whole)) broken[step->second] = 1;
  }
  std::erase_if(pipelines_, [&](const Pipeline& one) { return broken[one.step] != 0; });
  measure_tails(graph);
}

// Puts the operations of one step of one replica, lists first … last − 1, into slots. Returns the first slot of each
// pipeline, or nothing where a list has another size than the schedule. Where a stage has several tensor-parallel
// ranks, the k-th ranks of all stages make a pipeline.
std::optional<std::vector<size_t>> OrderModel::fill_slots(const RankLists& lists, size_t first, size_t last,
                                                          const std::vector<uint32_t>& op_of) {
  const size_t v = sizes_.chunks, m = sizes_.micro_batches, per = slots_of_pipeline();
  const size_t tokens = lists.lists[last - 1].end - lists.lists[first].begin, slots_before = slots_.size();
  std::vector<size_t> peer(sizes_.stages), pipelines;
  for (size_t l = first; l < last; ++l) {
    const RankList& list = lists.lists[l];
    if (list.stage < 0 || list.stage >= sizes_.stages || list.micro_batches != sizes_.micro_batches) return {};
    const size_t pipeline = peer[list.stage]++;
    if (pipeline == pipelines.size()) {
      // A step of few cells must not make a table for many.
      if (slots_.size() - slots_before + per > tokens * 4 + 64) return {};
      pipelines.push_back(slots_.size());
      slots_.resize(slots_.size() + per);
    }
    for (size_t t = list.begin; t < list.end; ++t) {
      const WorkToken& token = lists.tokens[t];
      const uint32_t op = op_of[lists.cell[t]];
      if (op == kNoCell || token.micro_batch < 0 || token.micro_batch >= sizes_.micro_batches || token.chunk < 0 ||
          token.chunk >= sizes_.chunks)
        continue;
      Slot& slot = slots_[pipelines[pipeline] + (list.stage * v + token.chunk) * m + token.micro_batch];
      slot.op[direction_of(token.kind)] = op;
      if (token.fused) slot.fused_with[token.kind == CellKind::kForward ? 0 : 1] = true;
    }
  }
  return pipelines;
}

// Returns false where the pipeline lacks a forward or a backward of any slot.
bool OrderModel::add_pipeline(Pipeline pipeline, const StepGraph& graph) {
  const size_t v = sizes_.chunks, m = sizes_.micro_batches;
  for (size_t s = 0; s < slots_of_pipeline(); ++s) {
    const Slot& slot = slots_[pipeline.slots + s];
    if (!runs_here(present_.schedule, static_cast<int32_t>(s / m % v), static_cast<int32_t>(s % m))) continue;
    if (slot.op[0] == kNoCell || slot.op[1] == kNoCell) return false;
    for (const uint32_t op : slot.op)
      if (op != kNoCell) pipeline.head_ns = std::min<double>(pipeline.head_ns, graph.start_ns[op]);
  }
  pipelines_.push_back(pipeline);
  return true;
}

// Finds how long each step lasts after its last cell.
void OrderModel::measure_tails(const StepGraph& graph) {
  tail_ns_.assign(graph.steps.size(), kNaN);
  for (const Pipeline& pipeline : pipelines_) {
    double& tail = tail_ns_[pipeline.step];
    for (size_t s = pipeline.slots; s < pipeline.slots + slots_of_pipeline(); ++s)
      for (const uint32_t op : slots_[s].op) {
        if (op == kNoCell) continue;
        const double left = graph.steps[pipeline.step].span_ns - graph.ended_ns(op);
        if (!(tail <= left)) tail = left;
      }
  }
}

void OrderModel::take_times(const StepGraph& graph, const OpTimesView& times, const Pipeline& pipeline,
                            OwnTimes& own) const {
  const size_t v = sizes_.chunks, m = sizes_.micro_batches;
  for (size_t s = 0; s < own.size(); ++s) {
    const Slot& slot = slots_[pipeline.slots + s];
    for (size_t d = 0; d < kDirections; ++d) {
      own[s][d] = 0;
      const uint32_t op = slot.op[d];
      if (op == kNoCell) continue;
      if (d < 2 && slot.fused_with[d]) {
        const size_t vs = virtual_stage_of(static_cast<int32_t>(s / m / v), static_cast<int32_t>(s / m % v));
        const DirectionCost& usual = stages_.cost_ns[vs];
        const double both = usual[0] + usual[1] + usual[2];
        const double part = both > 0 ? (d == 0 ? usual[0] : usual[1] + usual[2]) / both : 0.5;
        own[s][d] = times.of(graph, op).dur_ns * part / overlap_ratio_;
      } else {
        const bool first = graph.start_ns[op] <= pipeline.head_ns;
        const OpTimesView::OpTime took = times.of(graph, op);
        own[s][d] = took.dur_ns + (first ? 0 : took.delay_ns);
      }
    }
  }
}

class OrderModel::PlanCosts {
 public:
  using Costs = std::vector<std::array<double, 4>>;  // F, B, I, W
  PlanCosts(const OrderModel& model, const LayerCosts& layers, const OrderPlan& plan)
      : model_(model), plan_(plan), new_v_(plan.schedule.sizes.chunks), new_m_(plan.schedule.sizes.micro_batches),
        same_chunks_(plan.schedule.sizes.chunks == model.sizes_.chunks && plan.schedule.layout == model.layout_) {
    const StageCosts& stages = model.stages_;
    if (!same_chunks_ && layers.constant_ns.size() == stages.cost_ns.size() && stages.cost_ns.size() > 1)
      ends_ = {{static_cast<size_t>(stages.owner.front()), layers.constant_ns.front()},
               {static_cast<size_t>(stages.owner.back()), layers.constant_ns.back()}};
  }

  void costs(const OwnTimes& own, Costs& cost) const {
    const size_t p = model_.sizes_.stages, v = model_.sizes_.chunks;
    const size_t m = model_.sizes_.micro_batches;
    const size_t new_stages = virtual_stage_count(plan_.schedule);
    OwnTimes sums, ends_ns;
    if (!same_chunks_) {
      sums.resize(p * m), ends_ns.resize(ends_.size() * m);
      for (size_t s = 0; s < own.size(); ++s)
        for (size_t d = 0; d < kDirections; ++d) sums[s / m / v * m + s % m][d] += own[s][d];
      for (size_t e = 0; e < ends_.size(); ++e)
        for (size_t mb = 0; mb < m; ++mb)
          for (size_t d = 0; d < kDirections; ++d) {
            double& from = sums[ends_[e].owner * m + mb][d];
            const double taken = std::clamp(from * kMaxConstant, 0.0, ends_[e].ns[d]);
            ends_ns[e * m + mb][d] = taken;
            from -= taken;
          }
    }
    cost.resize(p * new_v_ * new_m_);
    for (size_t s = 0; s < cost.size(); ++s) {
      const size_t rank = s / new_m_ / new_v_, chunk = s / new_m_ % new_v_;
      size_t mb = s % new_m_ % m;
      if (model_.layout_ == ChunkLayout::kBidirectional)  // mb stays within its direction
        mb = (s % new_m_) % (new_m_ / 2) % (m / 2) + (s % new_m_ >= new_m_ / 2 ? m / 2 : 0);
      std::array<double, kDirections> ns = {};
      if (same_chunks_) {
        ns = own[(rank * v + chunk) * m + mb];
      } else {
        const size_t vs = virtual_stage(plan_.schedule, static_cast<int32_t>(rank), static_cast<int32_t>(chunk));
        for (size_t d = 0; d < kDirections; ++d) {
          ns[d] = sums[rank * m + mb][d] / new_v_;
          if (!ends_.empty() && vs == 0) ns[d] += ends_ns[mb][d];
          if (!ends_.empty() && vs + 1 == new_stages) ns[d] += ends_ns[m + mb][d];
        }
      }
      const double both = ns[1] + ns[2];
      const bool split = ns[2] != 0;
      cost[s] = {ns[0], both, split ? ns[1] : both * (1 - model_.weight_share_),
                 split ? ns[2] : both * model_.weight_share_};
    }
  }

 private:
  struct End {  // the part of a rank's cost that is embedding or head, which another rank may hold in another order
    size_t owner = 0;
    DirectionCost ns = {};
  };
  const OrderModel& model_;
  const OrderPlan& plan_;
  size_t new_v_, new_m_;
  bool same_chunks_;
  std::vector<End> ends_;  // those of the first and the last virtual stage
};

std::vector<std::vector<double>> OrderModel::replay(const StepGraph& graph, const OpTimesView& times,
                                                    const LayerCosts& layers, std::span<const OrderPlan* const> plans,
                                                    uint32_t only_step, std::vector<OrderCell>* cells) const {
  const size_t p = sizes_.stages;
  const std::vector<double> latency = latencies(graph, times);
  std::vector<PlanCosts> costs;
  for (const OrderPlan* plan : plans) costs.emplace_back(*this, layers, *plan);
  std::vector<double> longest(pipelines_.size() * plans.size(), 0);  // by pipeline, then plan
  std::vector<std::vector<OrderCell>> replayed(cells ? pipelines_.size() : 0);
  const size_t stretch = 16, stretches = (pipelines_.size() + stretch - 1) / stretch;
  parallel_for(stretches, [&](size_t block) {
    PlanCosts::Costs cost;
    OwnTimes own(slots_of_pipeline());
    std::vector<double> end, begin;
    for (size_t i = block * stretch; i < std::min(pipelines_.size(), (block + 1) * stretch); ++i) {
      const Pipeline& pipeline = pipelines_[i];
      if (only_step != kNoCell && pipeline.step != only_step) continue;
      take_times(graph, times, pipeline, own);
      const double* of_replica =
          latency.data() + std::min<size_t>(latency.size() / (p * 2) - 1, std::max(0, pipeline.dp)) * p * 2;
      for (size_t k = 0; k < plans.size(); ++k) {
        const OrderPlan& plan = *plans[k];
        costs[k].costs(own, cost);
        end.resize(plan.cells.size());
        begin.resize(cells ? plan.cells.size() : 0);
        double last = 0;
        for (size_t c = 0; c < plan.cells.size(); ++c) {
          const OrderPlan::Cell& cell = plan.cells[c];
          double start = cell.before == kNoCell ? pipeline.head_ns : end[cell.before];
          double ns = cost[cell.slot[0]][cell.kind[0]];
          if (cell.after[0] != kNoCell)
            start = std::max(start, end[cell.after[0]] + (cell.edge[0] < 0 ? 0 : of_replica[cell.edge[0]]));
          if (cell.count == 2) {
            ns = (ns + cost[cell.slot[1]][cell.kind[1]]) * overlap_ratio_;
            if (cell.after[1] != kNoCell)
              start = std::max(start, end[cell.after[1]] + (cell.edge[1] < 0 ? 0 : of_replica[cell.edge[1]]));
          }
          if (cells) begin[c] = start;
          end[c] = start + ns;
          last = std::max(last, end[c]);
        }
        longest[i * plans.size() + k] = last;
        if (cells && (i == 0 || pipelines_[i - 1].step != only_step || pipelines_[i - 1].dp != pipeline.dp))
          add_order_cells(plan, pipeline.dp, begin, end, replayed[i]);
      }
    }
  });
  for (const std::vector<OrderCell>& own : replayed) cells->insert(cells->end(), own.begin(), own.end());
  std::vector<std::vector<double>> all(plans.size(), std::vector<double>(graph.steps.size(), kNaN));
  for (size_t k = 0; k < plans.size(); ++k) {
    for (size_t i = 0; i < pipelines_.size(); ++i) {
      double& ns = all[k][pipelines_[i].step];
      const double own = longest[i * plans.size() + k];
      if (!(ns >= own)) ns = own;
    }
    for (size_t s = 0; s < graph.steps.size(); ++s) all[k][s] += tail_ns_[s];
  }
  return all;
}

std::vector<OrderCell> OrderModel::step_cells(const StepGraph& graph, const OpTimesView& times,
                                              const LayerCosts& layers, const OrderPlan& plan, uint32_t step) const {
  std::vector<OrderCell> cells;
  const OrderPlan* one = &plan;
  replay(graph, times, layers, {&one, 1}, step, &cells);
  return cells;
}

}  // namespace stageline
