#include "pipeline/measure/slowdown.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/number.h"

namespace stageline {
namespace {

constexpr uint32_t kNoWorld = UINT32_MAX;

// The numbers that occur, each of which gets a world of its own.
struct Choices {
  std::map<int32_t, uint32_t> world;  // number → world
  void see(int32_t number) {
    if (number != kUnknown) world.try_emplace(number, 0);
  }
  uint32_t lay(uint32_t next) {
    for (auto& [number, w] : world) w = next++;
    return next;
  }
  uint32_t of(int32_t number) const {
    const auto it = world.find(number);
    return it == world.end() ? kNoWorld : it->second;
  }
};

SlowdownPart part_of(const StepGraph& graph, const WorldTimes& times, uint32_t world, uint32_t ideal) {
  SlowdownPart part;
  part.s = times.mean_ns(world) / times.mean_ns(ideal);
  part.add_ns = times.mean_ns(world) - times.mean_ns(ideal);
  for (size_t s = 0; s < graph.steps.size(); ++s) part.step_s.push_back(times.ns(s, world) / times.ns(s, ideal));
  return part;
}

// Marks the slowest 3 % of the workers, at least one; of equal ones the one of the lowest rank.
void mark_slowest(const Trace& trace, std::vector<SlowdownWorker>& workers) {
  std::vector<size_t> order(workers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (workers[a].s != workers[b].s) return workers[a].s > workers[b].s;
    return trace.parts[workers[a].part].rank < trace.parts[workers[b].part].rank;
  });
  const size_t count = (workers.size() * 3 + 99) / 100;
  for (size_t i = 0; i < count; ++i) workers[order[i]].replaced = true;
}

// Returns the operations of the graph by type, with their mean and their fair time.
std::vector<SlowdownType> operations_of(const StepGraph& graph) {
  const OpTimes ideal = ideal_times(graph);
  std::vector<SlowdownType> out(graph.types.size());
  for (size_t t = 0; t < graph.types.size(); ++t)
    out[t] = {graph.types[t].name, graph.types[t].kind, graph.types[t].communicates, 0, 0, 0};
  for (const GraphStep& step : graph.steps)
    for (uint32_t i = step.begin; i < step.end; ++i) {
      SlowdownType& type = out[graph.type[i]];
      type.fair_ns = ideal.dur_ns[i];
      if (!step.counts) continue;
      ++type.count;
      type.mean_ns += graph.dur_ns[i];
    }
  for (SlowdownType& type : out)
    if (type.count > 0) type.mean_ns /= static_cast<double>(type.count);
  return out;
}

// Returns the mean step in which the replaced workers take fair times.
double ns_without(const StepGraph& graph, size_t parts, const std::vector<SlowdownWorker>& workers,
                  const std::vector<double>& fair_of_type) {
  std::vector<bool> fair(parts, false);
  for (const SlowdownWorker& worker : workers)
    if (worker.replaced) fair[worker.part] = true;
  const WorldTimes without =
      replay_worlds(graph, 1, [&](uint32_t op, size_t, std::span<double> dur_ns, std::span<double> delay_ns) {
        dur_ns[0] = fair[graph.part[op]] ? fair_of_type[graph.type[op]] : graph.dur_ns[op];
        delay_ns[0] = 0;
      });
  return without.mean_ns(0);
}

}  // namespace

std::string slowdown_group(const GraphType& type, GraphSource source) {
  if (source == GraphSource::kComputeCells || !is_message(type.kind)) return type.name;
  const bool forward = type.kind == CellKind::kSendForward || type.kind == CellKind::kRecvForward;
  return forward ? "forward-pp-comm" : "backward-pp-comm";
}

Slowdown slowdown(const Trace& trace, const StepGraph& graph) {
  Slowdown out;
  const size_t n = graph.size();
  out.operations = operations_of(graph);
  std::vector<double> fair_of_type;
  for (const SlowdownType& type : out.operations) fair_of_type.push_back(type.fair_ns);

  Choices replicas, stages;
  std::vector<bool> works(trace.parts.size(), false);
  for (size_t i = 0; i < n; ++i) {
    works[graph.part[i]] = true;
  }
  for (size_t p = 0; p < works.size(); ++p) {
    if (!works[p]) continue;
    replicas.see(trace.parts[p].dp);
    stages.see(trace.parts[p].stage);
  }
  if (static_cast<double>(n) * static_cast<double>(replicas.world.size()) > kMaxReplicaWork) replicas.world.clear();
  std::map<std::string, uint32_t> type_worlds;
  for (const GraphType& type : graph.types) type_worlds.try_emplace(slowdown_group(type, graph.source), 0);

  // The scenarios are: no delay, ideal, the last stage at its fair time, then each type, each replica, and each stage.
  constexpr uint32_t kNoDelay = 0, kIdeal = 1, kFairLast = 2;
  uint32_t next = 3;
  for (auto& [name, world] : type_worlds) world = next++;
  next = replicas.lay(next);
  next = stages.lay(next);
  std::vector<uint32_t> world_of_type, world_of_replica(trace.parts.size()), world_of_stage(trace.parts.size());
  for (const GraphType& type : graph.types) world_of_type.push_back(type_worlds.at(slowdown_group(type, graph.source)));
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    world_of_replica[p] = replicas.of(trace.parts[p].dp);
    world_of_stage[p] = stages.of(trace.parts[p].stage);
  }
  const uint32_t last_stage = stages.world.empty() ? kNoWorld : stages.world.rbegin()->second;

  const WorldTimes times =
      replay_worlds(graph, next, [&](uint32_t op, size_t first, std::span<double> dur_ns, std::span<double> delay_ns) {
        const double recorded = graph.dur_ns[op];
        std::fill(dur_ns.begin(), dur_ns.end(), fair_of_type[graph.type[op]]);
        std::fill(delay_ns.begin(), delay_ns.end(), 0.0);
        const auto keep = [&](uint32_t world) {
          if (world >= first && world - first < dur_ns.size()) dur_ns[world - first] = recorded;
        };
        const auto part = static_cast<size_t>(graph.part[op]);
        keep(kNoDelay);
        keep(world_of_type[graph.type[op]]);
        if (world_of_replica[part] != kNoWorld) keep(world_of_replica[part]);
        if (world_of_stage[part] != kNoWorld) keep(world_of_stage[part]);
        if (world_of_stage[part] != last_stage || last_stage == kNoWorld) keep(kFairLast);
      });

  double actual = 0, counted = 0;
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    if (graph.steps[s].counts) {
      actual += static_cast<double>(graph.steps[s].span_ns);
      counted += 1;
    }
    out.step_no_delay_ns.push_back(times.ns(s, kNoDelay));
    out.step_ideal_ns.push_back(times.ns(s, kIdeal));
  }
  out.actual_ns = counted > 0 ? actual / counted : kNaN;
  out.no_delay_ns = times.mean_ns(kNoDelay);
  out.ideal_ns = times.mean_ns(kIdeal);
  out.s = out.no_delay_ns / out.ideal_ns;
  out.delay_s = out.actual_ns / out.no_delay_ns;
  for (const auto& [name, world] : type_worlds) {
    out.types.push_back(part_of(graph, times, world, kIdeal));
    out.types.back().name = name;
  }
  std::stable_sort(out.types.begin(), out.types.end(),
                   [](const SlowdownPart& a, const SlowdownPart& b) { return a.s > b.s; });
  const auto numbered = [&](const Choices& choices, std::vector<SlowdownPart>& into) {
    for (const auto& [number, world] : choices.world) {
      into.push_back(part_of(graph, times, world, kIdeal));
      into.back().number = number;
    }
  };
  numbered(replicas, out.replicas);
  numbered(stages, out.stages);
  for (size_t p = 0; p < works.size(); ++p) {
    if (!works[p] || world_of_stage[p] == kNoWorld) continue;
    const double of_stage = times.mean_ns(world_of_stage[p]);
    const double of_replica = world_of_replica[p] == kNoWorld ? of_stage : times.mean_ns(world_of_replica[p]);
    out.workers.push_back({static_cast<int32_t>(p), std::min(of_replica, of_stage) / out.ideal_ns, false});
  }
  mark_slowest(trace, out.workers);

  out.m_s = out.m_w = kNaN;
  if (!(out.s >= kMinSlowdown)) return out;
  const double lost = out.no_delay_ns - out.ideal_ns;
  out.m_s = (out.no_delay_ns - times.mean_ns(kFairLast)) / lost;
  out.m_w = (out.no_delay_ns - ns_without(graph, trace.parts.size(), out.workers, fair_of_type)) / lost;
  return out;
}

}  // namespace stageline
