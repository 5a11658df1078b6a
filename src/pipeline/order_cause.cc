#include "pipeline/order_cause.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "model/stage_costs.h"
#include "model/statistics.h"
#include "pipeline/replay.h"

namespace stageline {
namespace {

using Place = std::tuple<int32_t, int32_t, CellKind>;

class Orders {
 public:
  Orders(const StepGraph& graph, const TheoryRun& theory, const std::vector<bool>& counts)
      : g_(graph), theory_(theory), counts_(counts) {
    std::map<Place, int64_t> n;
    for (size_t s = 0; s < g_.steps.size(); ++s)
      for (uint32_t op = g_.steps[s].begin; counts_[s] && op < g_.steps[s].end; ++op)
        if (is_compute(g_.kind[op])) means_[at(op)] += g_.dur_ns[op], ++n[at(op)];
    for (auto& [place, ns] : means_) ns /= static_cast<double>(n[place]);
    // One latency for all messages: what a link takes is no matter of order.
    std::vector<double> transfers;
    for (uint32_t op = 0; op < g_.size(); ++op)
      if (g_.kind[op] == CellKind::kRecvForward || g_.kind[op] == CellKind::kRecvBackward)
        transfers.push_back(std::max(0.0, g_.dur_ns[op]));
    latency_ns_ = transfers.empty() ? 0 : median_of(std::move(transfers));
  }

  // The order that ran, with mean times.
  std::vector<double> own_ns() const {
    std::vector<double> mean(g_.size());
    for (uint32_t op = 0; op < g_.size(); ++op)
      if (const auto it = means_.find(at(op)); is_compute(g_.kind[op]) && it != means_.end()) mean[op] = it->second;
    const WorldTimes times =
        replay_worlds(g_, 1, [&](uint32_t op, size_t, std::span<double> dur, std::span<double> delay) {
          dur[0] = is_message(g_.kind[op]) ? latency_ns_ : mean[op];
          delay[0] = 0;
        });
    return times.step_ns;
  }

  // The recognised schedule's order, by step; NaN where it has none for the step. Backwards of the stages in `whole`
  // are split as they are on the others, or in halves.
  std::vector<double> schedule_ns(const std::vector<bool>& whole) const {
    double input = 0, weight = 0;  // of the stages that split
    for (const auto& [place, ns] : means_) {
      if (std::get<CellKind>(place) == CellKind::kInputGrad) input += ns;
      if (std::get<CellKind>(place) == CellKind::kWeightGrad) weight += ns;
    }
    const double share = input + weight > 0 ? input / (input + weight) : 0.5;
    std::map<const TheorySize*, double> known;
    std::vector<double> span(g_.steps.size(), std::nan(""));
    each_size([&](size_t step, const TheorySize& size) {
      const auto [it, fresh] = known.try_emplace(&size, std::nan(""));
      if (fresh) {
        ReplayCosts costs;
        costs.latency_ns = static_cast<int64_t>(std::llround(latency_ns_));
        costs.cell_ns = [&](int32_t stage, const ScheduleCell& cell) {
          const Action& action = cell.actions()[0];
          double ns = 0;
          if (cell.overlapped()) {  // both halves have the interval of the whole
            for (const Action& half : cell.actions()) ns = std::max(ns, mean({stage, half.chunk, half.kind}));
            return static_cast<int64_t>(std::llround(ns));
          }
          const bool half = action.kind == CellKind::kInputGrad || action.kind == CellKind::kWeightGrad;
          if (half && whole[static_cast<size_t>(stage)]) {
            ns = mean({stage, action.chunk, CellKind::kBackward}) *
                 (action.kind == CellKind::kInputGrad ? share : 1 - share);
          } else {
            ns = mean({stage, action.chunk, action.kind});
          }
          return static_cast<int64_t>(std::llround(ns));
        };
        const auto times = replay(size.schedule, costs);
        if (times) it->second = static_cast<double>(schedule_numbers(size.schedule, *times).span_ns);
      }
      span[step] = it->second;
    });
    return span;
  }

  // Stages with whole backwards and no weight gradients.
  std::vector<bool> whole_stages(int32_t stages) const {
    std::vector<bool> whole(static_cast<size_t>(stages)), split(whole.size());
    for (const auto& [place, ns] : means_) {
      const int32_t stage = std::get<0>(place);
      if (stage < 0 || stage >= stages) continue;
      if (std::get<CellKind>(place) == CellKind::kBackward) whole[static_cast<size_t>(stage)] = true;
      if (std::get<CellKind>(place) == CellKind::kWeightGrad) split[static_cast<size_t>(stage)] = true;
    }
    for (size_t s = 0; s < whole.size(); ++s) whole[s] = whole[s] && !split[s];
    return whole;
  }

 private:
  Place at(uint32_t op) const { return {g_.stage[op], std::max(g_.chunk[op], 0), g_.kind[op]}; }
  double mean(const Place& place) const {
    const auto it = means_.find(place);
    return it == means_.end() ? 0 : it->second;
  }
  template <class Body>
  void each_size(const Body& body) const {
    size_t step = 0;
    for (size_t l = 0; l < theory_.lists.lists.size(); ++l) {
      const int32_t number = theory_.lists.lists[l].step;
      while (step < g_.steps.size() && g_.steps[step].step < number) ++step;
      if (step < g_.steps.size() && g_.steps[step].step == number)
        if (const TheorySize* size = theory_.size(l)) body(step, *size);
    }
  }

  const StepGraph& g_;
  const TheoryRun& theory_;
  const std::vector<bool>& counts_;
  std::map<Place, double> means_;
  double latency_ns_ = 0;
};

bool splits(const Schedule& schedule, bool& overlaps) {
  bool found = false;
  for (const RankOrder& order : schedule.ranks)
    for (const ScheduleCell& cell : order) {
      overlaps |= cell.overlapped();
      found |= cell.actions()[0].kind == CellKind::kWeightGrad;
    }
  return found;
}

}  // namespace

void add_order_causes(const StepGraph& graph, const TheoryRun& theory, const std::vector<bool>& counts,
                      std::vector<Cause>& out) {
  if (!theory.theory.known() || theory.sizes.empty()) return;
  const Recognition& recognition = theory.recognition;
  Cause order;
  order.kind = CauseKind::kOrder;
  order.of = recognition.lists;
  for (const Divergence& d : recognition.divergences) order.count += d.is_order ? d.lists : 0;
  const auto& schedule = theory.sizes.front().schedule;
  bool overlaps = false;
  const bool split = splits(schedule, overlaps);
  const Orders orders(graph, theory, counts);
  const auto stages = static_cast<int32_t>(schedule.ranks.size());
  const std::vector<bool> whole = orders.whole_stages(stages);
  const auto unsplit = std::count(whole.begin(), whole.end(), true);
  const bool lacks = split && !overlaps && unsplit > 0;
  if (order.count == 0 && !lacks) return;
  const std::vector<double> own = orders.own_ns();
  const auto add = [&](Cause cause, const std::vector<double>& right) {
    std::vector<double> lost;
    for (size_t s = 0; s < own.size(); ++s)
      if (counts[s] && !std::isnan(right[s])) lost.push_back(own[s] - right[s]);
    if (lost.empty()) return;
    cause.steps = static_cast<int64_t>(lost.size());
    cause.lost_ns = mean_of(lost);
    cause.error_ns = sample_std(lost) / std::sqrt(static_cast<double>(lost.size()));
    out.push_back(std::move(cause));
  };
  if (lacks) {
    Cause cause;
    cause.kind = CauseKind::kUnsplit;
    cause.count = unsplit;
    cause.of = stages;
    if (unsplit == 1) cause.stage = static_cast<int32_t>(std::find(whole.begin(), whole.end(), true) - whole.begin());
    add(std::move(cause), orders.schedule_ns(whole));
  } else {
    add(std::move(order), orders.schedule_ns(std::vector<bool>(whole.size())));
  }
}

}  // namespace stageline
