#include "pipeline/measure/slowdown.h"

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
  uint32_t of(int32_t number) const { return value_at(world, number, kNoWorld); }
};

// The scenarios that are replayed at once, all without delays: recorded durations, fair ones (the ideal), and recorded
// ones with a fair last stage. Others are the ideal with recorded durations of one group of types, one replica or one
// stage.
struct Worlds {
  static constexpr uint32_t kNoDelay = 0, kIdeal = 1, kFairLast = 2;
  uint32_t count = 3;
  std::map<std::string, uint32_t> by_group;  // slowdown_group() → world
  Choices replicas, stages;
  std::vector<uint32_t> of_type;               // by type
  std::vector<uint32_t> of_replica, of_stage;  // by part; kNoWorld where it is unknown
  uint32_t last_stage = kNoWorld;
};

Worlds lay_worlds(const Trace& trace, const StepGraph& graph, const std::vector<bool>& works) {
  Worlds worlds;
  for (size_t p = 0; p < works.size(); ++p) {
    if (!works[p]) continue;
    worlds.replicas.see(trace.parts[p].dp);
    worlds.stages.see(trace.parts[p].stage);
  }
  std::map<int32_t, uint32_t>& replicas = worlds.replicas.world;
  if (graph.size() * static_cast<double>(replicas.size()) > kMaxReplicaWork) replicas.clear();
  for (const GraphType& type : graph.types) worlds.by_group.try_emplace(slowdown_group(type, graph.source), 0);
  for (auto& [name, world] : worlds.by_group) world = worlds.count++;
  worlds.count = worlds.stages.lay(worlds.replicas.lay(worlds.count));
  for (const GraphType& type : graph.types)
    worlds.of_type.push_back(worlds.by_group.at(slowdown_group(type, graph.source)));
  for (const Part& part : trace.parts) {
    worlds.of_replica.push_back(worlds.replicas.of(part.dp));
    worlds.of_stage.push_back(worlds.stages.of(part.stage));
  }
  if (!worlds.stages.world.empty()) worlds.last_stage = worlds.stages.world.rbegin()->second;
  return worlds;
}

WorldTimes replay_all(const StepGraph& graph, const Worlds& worlds, const std::vector<double>& fair_of_type) {
  return replay_worlds(graph, worlds.count,
                       [&](uint32_t op, size_t first, std::span<double> dur_ns, std::span<double> delay_ns) {
                         std::ranges::fill(dur_ns, fair_of_type[graph.type[op]]);
                         std::ranges::fill(delay_ns, 0.0);
                         const auto keep = [&](uint32_t world) {
                           if (world != kNoWorld && world >= first && world - first < dur_ns.size())
                             dur_ns[world - first] = graph.dur_ns[op];
                         };
                         const uint32_t of_stage = worlds.of_stage[graph.part[op]];
                         keep(Worlds::kNoDelay);
                         keep(worlds.of_type[graph.type[op]]);
                         keep(worlds.of_replica[graph.part[op]]);
                         keep(of_stage);
                         if (of_stage != worlds.last_stage || worlds.last_stage == kNoWorld) keep(Worlds::kFairLast);
                       });
}

SlowdownPart part_of(const StepGraph& graph, const WorldTimes& times, uint32_t world) {
  SlowdownPart part;
  part.s = times.mean_ns(world) / times.mean_ns(Worlds::kIdeal);
  part.add_ns = times.mean_ns(world) - times.mean_ns(Worlds::kIdeal);
  for (size_t s = 0; s < graph.steps.size(); ++s)
    part.step_s.push_back(times.ns(s, world) / times.ns(s, Worlds::kIdeal));
  return part;
}

// Marks the slowest 3 % of the workers, at least one; of equal ones the one of the lowest rank.
void mark_slowest(const Trace& trace, std::vector<SlowdownWorker>& workers) {
  std::vector<size_t> order(workers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  sort_stably(order, [&](size_t a, size_t b) {
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
    if (type.count > 0) type.mean_ns /= type.count;
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

void add_numbered(const StepGraph& graph, const WorldTimes& times, const Choices& choices,
                  std::vector<SlowdownPart>& into) {
  for (const auto& [number, world] : choices.world) {
    into.push_back(part_of(graph, times, world));
    into.back().number = number;
  }
}

// Takes S, the step times and the parts out of the replays.
void take_times(const StepGraph& graph, const Worlds& worlds, const WorldTimes& times, Slowdown& out) {
  double actual = 0, counted = 0;
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    if (graph.steps[s].counts) actual += graph.steps[s].span_ns, counted += 1;
    out.step_no_delay_ns.push_back(times.ns(s, Worlds::kNoDelay));
    out.step_ideal_ns.push_back(times.ns(s, Worlds::kIdeal));
  }
  out.actual_ns = counted > 0 ? actual / counted : kNaN;
  out.no_delay_ns = times.mean_ns(Worlds::kNoDelay);
  out.ideal_ns = times.mean_ns(Worlds::kIdeal);
  out.s = out.no_delay_ns / out.ideal_ns;
  out.delay_s = out.actual_ns / out.no_delay_ns;
  for (const auto& [name, world] : worlds.by_group) {
    out.types.push_back(part_of(graph, times, world));
    out.types.back().name = name;
  }
  sort_stably(out.types, std::greater(), &SlowdownPart::s);
  add_numbered(graph, times, worlds.replicas, out.replicas);
  add_numbered(graph, times, worlds.stages, out.stages);
}

}  // namespace

std::string slowdown_group(const GraphType& type, GraphSource source) {
  if (source == GraphSource::kComputeCells || !is_message(type.kind)) return type.name;
  const bool forward = is_of_forward(type.kind);
  return forward ? "forward-pp-comm" : "backward-pp-comm";
}

Slowdown slowdown(const Trace& trace, const StepGraph& graph) {
  Slowdown out;
  out.operations = operations_of(graph);
  auto fair_of_type = mapped<double>(out.operations, &SlowdownType::fair_ns);
  std::vector<bool> works(trace.parts.size(), false);
  for (size_t i = 0; i < graph.size(); ++i) works[graph.part[i]] = true;
  const Worlds worlds = lay_worlds(trace, graph, works);
  const WorldTimes times = replay_all(graph, worlds, fair_of_type);
  take_times(graph, worlds, times, out);
  for (size_t p = 0; p < works.size(); ++p) {
    if (!works[p] || worlds.of_stage[p] == kNoWorld) continue;
    const double of_stage = times.mean_ns(worlds.of_stage[p]);
    const double of_replica = worlds.of_replica[p] == kNoWorld ? of_stage : times.mean_ns(worlds.of_replica[p]);
    out.workers.push_back({static_cast<int32_t>(p), std::min(of_replica, of_stage) / out.ideal_ns, false});
  }
  mark_slowest(trace, out.workers);

  out.m_s = out.m_w = kNaN;
  if (!(out.s >= kMinSlowdown)) return out;
  const double lost = out.no_delay_ns - out.ideal_ns;
  out.m_s = (out.no_delay_ns - times.mean_ns(Worlds::kFairLast)) / lost;
  out.m_w = (out.no_delay_ns - ns_without(graph, trace.parts.size(), out.workers, fair_of_type)) / lost;
  return out;
}

}  // namespace stageline
