#include "diagnosis/causes/cause_worlds.h"

namespace stageline {
namespace {

// Replicas that wait for the slowest one: in each step that counts, every replica's compute as long as its places'
// means together. The others wait for the last one of a step, whichever that is.
class EvenReplicas {
 public:
  // `place_ns`: means by place; `place_of(op)`: UINT32_MAX where an operation has none.
  template <class PlaceOf>
  EvenReplicas(const CauseScene& scene, const CauseWorlds& worlds, const CauseWorlds::World& without,
               const std::vector<double>& place_ns, const PlaceOf& place_of)
      : graph_(scene.graph) {
    std::map<int32_t, size_t> number;  // by replica
    for (const Part& part : scene.trace.parts)
      replica_of_.push_back(number.try_emplace(part.dp, number.size()).first->second);
    replicas_ = number.size();
    if (replicas_ < 2) return;
    factor_.assign(graph_.steps.size() * replicas_, 1);
    parallel_for(graph_.steps.size(), [&](size_t s) {
      if (!scene.counts[s]) return;
      std::vector<double> own_ns(replicas_), mean_ns(replicas_);
      worlds.each({graph_.steps[s].begin, graph_.steps[s].end}, without, [&](uint32_t op, double dur) {
        const uint32_t place = place_of(op);
        if (place != UINT32_MAX) own_ns[replica(op)] += dur, mean_ns[replica(op)] += place_ns[place];
      });
      for (size_t r = 0; r < replicas_; ++r)
        if (own_ns[r] > 0) factor_[s * replicas_ + r] = mean_ns[r] / own_ns[r];
    });
  }
  bool any() const { return !factor_.empty(); }
  double factor(uint32_t op) const { return factor_[step_of(graph_, op) * replicas_ + replica(op)]; }

 private:
  size_t replica(uint32_t op) const { return replica_of_[graph_.part[op]]; }

  const StepGraph& graph_;
  std::vector<size_t> replica_of_;  // by part
  size_t replicas_ = 0;
  std::vector<double> factor_;  // step · replicas + replica; empty where there is one replica
};

}  // namespace

void account_for_rest(const CauseScene& scene, CauseWorlds& worlds, const CauseWorlds::World& all,
                      const std::vector<bool>& counts, std::vector<AccountLine>& left) {
  const StepGraph& g = scene.graph;
  const CellTimes& times = scene.times;
  const auto place_of = [&](uint32_t op) {
    return times.worker_of(op) == CellTimes::kNone ? UINT32_MAX : static_cast<uint32_t>(times.place_of(op));
  };
  const OpBlocks blocks(counted_ops(g, counts), times.place_count());
  std::vector<double> sum(blocks.size() * times.place_count()), count(sum.size());
  blocks.each_stretch([&](size_t b, const OpStretch& ops) {
    worlds.each(ops, all, [&](uint32_t op, double dur) {
      const uint32_t place = place_of(op);
      if (place == UINT32_MAX || worlds.is_held(op)) return;
      sum[b * times.place_count() + place] += dur;
      ++count[b * times.place_count() + place];
    });
  });
  std::vector<double> place_ns(times.place_count()), cells(times.place_count());
  for (size_t i = 0; i < sum.size(); ++i) place_ns[i % place_ns.size()] += sum[i], cells[i % cells.size()] += count[i];
  std::array<double, CellTimes::kKinds> kind_ns{}, of_kind{};
  for (size_t p = 0; p < place_ns.size(); ++p) {
    kind_ns[p % CellTimes::kKinds] += place_ns[p], of_kind[p % CellTimes::kKinds] += cells[p];
    if (cells[p] > 0) place_ns[p] /= cells[p];
  }
  for (size_t k = 0; k < kind_ns.size(); ++k)
    if (of_kind[k] > 0) kind_ns[k] /= of_kind[k];
  const CauseWorld prompt = [&](uint32_t op, double&, double& delay) {
    if (is_compute(g.kind[op])) delay = std::min(delay, 0.0);
  };
  const CauseWorld at_once = [&](uint32_t op, double& dur, double&) {
    if (is_message(g.kind[op])) dur = std::min(dur, 0.0);
  };
  const CauseWorld by_place = [&](uint32_t op, double& dur, double&) {
    if (const uint32_t place = place_of(op); place != UINT32_MAX) dur = place_ns[place];
  };
  const CauseWorld by_kind = [&](uint32_t op, double& dur, double&) {
    if (const uint32_t place = place_of(op); place != UINT32_MAX) dur = kind_ns[place % CellTimes::kKinds];
  };
  const EvenReplicas even(scene, worlds, all, place_ns, place_of);
  const CauseWorld by_replica = [&](uint32_t op, double& dur, double&) {
    if (place_of(op) != UINT32_MAX) dur *= even.factor(op);
  };
  // Each scenario has the changes of the previous one and one more; the difference is a line of the breakdown.
  std::vector<std::pair<std::string_view, CauseWorld>> changes = {{"late", prompt}, {"message", at_once}};
  if (even.any()) changes.emplace_back("replica-jitter", by_replica);
  changes.emplace_back("jitter", by_place);
  changes.emplace_back("imbalance", by_kind);
  std::vector<CauseWorlds::World> levels = {all};
  for (const auto& [id, change] : changes) {
    levels.push_back(levels.back());
    levels.back().push_back(change);
  }
  const WorldTimes replayed = worlds.replay(levels);
  for (size_t l = 0; l < changes.size(); ++l) {
    const std::vector<double> gains = gains_of(replayed, l, l + 1, counts);
    left.push_back({changes[l].first, "", CellKind::kOther, mean_of(gains), standard_error(gains)});
  }
}

}  // namespace stageline
