// Measures the usual time of the run's cells for each virtual stage, and of its messages for each link.
#include "diagnosis/what_if/other_order.h"

namespace stageline {

void OrderModel::measure(const StepGraph& graph) {
  const size_t v = sizes_.chunks, m = sizes_.micro_batches;
  const size_t per = sizes_.stages * v * m;
  const size_t virtual_stages = virtual_stage_count(present_.schedule);
  stages_.owner.assign(virtual_stages, 0);
  ReplicaSums replicas;
  double fused_ns = 0, apart_ns[2] = {}, input_ns = 0, weight_ns = 0;
  int64_t fused_count = 0, apart_count[2] = {};
  for (const Pipeline& pipeline : pipelines_) {
    std::vector<CostSum>& sums = replicas[pipeline.dp];
    sums.resize(virtual_stages);
    for (size_t s = 0; s < per; ++s) {
      const Slot& slot = slots_[pipeline.slots + s];
      const auto stage = static_cast<int32_t>(s / m / v), chunk = static_cast<int32_t>(s / m % v);
      const size_t vs = virtual_stage_of(stage, chunk);
      // With two directions, both ends have the same layers, so the first direction's owner stands for them.
      if (layout_ != ChunkLayout::kBidirectional || chunk == 0) stages_.owner[vs] = stage;
      for (size_t d = 0; d < kDirections; ++d) {
        if (slot.op[d] == kNoCell) continue;
        const double dur = graph.dur_ns[slot.op[d]];
        const bool fused = d < 2 && slot.fused_with[d];
        if (fused) {
          fused_ns += dur / 2;  // the two halves share one interval
          ++fused_count;
          continue;
        }
        sums[vs].ns[d] += dur;
        ++sums[vs].count[d];
        apart_ns[d == 0 ? 0 : 1] += dur;  // a backward that was split counts as a whole one
        if (d < 2) ++apart_count[d];
      }
      if (slot.op[1] != kNoCell && slot.op[2] != kNoCell) {
        input_ns += graph.dur_ns[slot.op[1]];
        weight_ns += graph.dur_ns[slot.op[2]];
      }
    }
  }
  if (weight_ns > 0 && input_ns > 0) {
    weight_share_ = weight_ns / (input_ns + weight_ns);
    weight_measured_ = true;
  }
  if (fused_count > 0 && apart_count[0] > 0 && apart_count[1] > 0) {
    const double apart = apart_ns[0] / apart_count[0] + apart_ns[1] / apart_count[1];
    if (apart > 0) overlap_ratio_ = 2 * fused_ns / fused_count / apart;
  }
  stages_.cost_ns = middle_costs(replicas);
}

std::vector<DirectionCost> OrderModel::middle_costs(const ReplicaSums& replicas) const {
  std::vector<DirectionCost> out(virtual_stage_count(present_.schedule));
  for (size_t vs = 0; vs < out.size(); ++vs)
    for (size_t d = 0; d < kDirections; ++d) {
      std::vector<double> means;
      for (const auto& [dp, sums] : replicas) {
        const auto count = sums[vs].count[d == 2 ? 1 : d];  // weight gradients are divided by the number of backwards
        if (count > 0) means.push_back(sums[vs].ns[d] / count);
      }
      // With two replicas the faster one counts: one slow device does not make a slow stage.
      const auto middle = means.begin() + (means.empty() ? 0 : (means.size() - 1) / 2);
      if (!means.empty()) std::nth_element(means.begin(), middle, means.end());
      out[vs][d] = means.empty() ? 0 : *middle;
    }
  return out;
}

std::vector<std::vector<DirectionCost>> OrderModel::step_costs(const StepGraph& graph) const {
  const size_t v = sizes_.chunks, m = sizes_.micro_batches, per = sizes_.stages * v * m;
  std::map<uint32_t, ReplicaSums> steps;
  for (const Pipeline& pipeline : pipelines_) {
    std::vector<CostSum>& sums = steps[pipeline.step][pipeline.dp];
    sums.resize(virtual_stage_count(present_.schedule));
    for (size_t s = 0; s < per; ++s) {
      const Slot& slot = slots_[pipeline.slots + s];
      CostSum& sum = sums[virtual_stage_of(static_cast<int32_t>(s / m / v), static_cast<int32_t>(s / m % v))];
      for (size_t d = 0; d < kDirections; ++d)
        if (slot.op[d] != kNoCell && !(d < 2 && slot.fused_with[d])) {
          sum.ns[d] += graph.dur_ns[slot.op[d]];
          ++sum.count[d];
        }
    }
  }
  return mapped<std::vector<DirectionCost>>(steps, [&](const auto& entry) { return middle_costs(entry.second); });
}

std::vector<double> OrderModel::latencies(const StepGraph& graph, const OpTimesView& times) const {
  const size_t p = sizes_.stages;
  // A replica number beyond the number of operations comes from a damaged source; such replicas share the last place.
  const size_t replicas = std::clamp<size_t>(static_cast<size_t>(std::max(1, graph.dp_count)), 1, graph.size() / p + 1);
  std::vector<double> sum(replicas * p * 2, 0);
  std::vector<int64_t> count(sum.size(), 0);
  double all = 0;
  int64_t all_count = 0;
  for (uint32_t op = 0; op < graph.size(); ++op) {
    const CellKind kind = graph.kind[op];
    if ((kind != CellKind::kRecvForward && kind != CellKind::kRecvBackward) || graph.stage(op) < 0 ||
        graph.stage(op) >= sizes_.stages)
      continue;
    const OpTimesView::OpTime took = times.of(graph, op);
    double ns = took.dur_ns;
    if (graph.group(op) == kNoGroup) {
      ns += took.delay_ns;
    } else {  // the sender may be late; a receive is posted when its rank has time
      const GraphGroup& group = graph.groups[graph.group(op)];
      for (uint32_t other = group.begin; other < group.end; ++other)
        if (is_send(graph.kind[other])) ns += times.of(graph, other).delay_ns;
    }
    const size_t dp = std::min<size_t>(replicas - 1, std::max(0, graph.dp(op)));
    const size_t edge = (dp * p + graph.stage(op)) * 2 + (kind == CellKind::kRecvForward ? 0 : 1);
    sum[edge] += ns;
    ++count[edge];
    all += ns;
    ++all_count;
  }
  const double usual = all_count > 0 ? std::max(0.0, all / all_count) : 0;
  for (size_t e = 0; e < sum.size(); ++e) sum[e] = count[e] > 0 ? std::max(0.0, sum[e] / count[e]) : usual;
  return sum;
}

}  // namespace stageline
