#include "pipeline/simulate.h"

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "base/text.h"
#include "pipeline/replay.h"

namespace stageline {
namespace {

// SplitMix64 and an approximate normal (sum of twelve uniforms): the same numbers everywhere, which
// <random>'s distributions do not promise.
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }
};

Status check(const SimulateOptions& o) {
  const auto bad = [](std::string what) { return Error{ErrorCode::kUsage, std::move(what), {}, ""}; };
  const int64_t ranks = int64_t{o.schedule.sizes.stages} * o.dp * o.peers;
  if (o.peers < 1 || ranks > 1'000'000) return bad("more than 1 000 000 ranks, or none");
  if (!o.rank_of.empty() && static_cast<int64_t>(o.rank_of.size()) != ranks) return bad("not every rank has a number");
  if (o.dp < 1 || o.dp > 4096) return bad("--dp must be 1 to 4096");
  if (o.steps < 1 || o.steps > 100'000) return bad("--steps must be 1 to 100000");
  if (o.machines < 1 || o.machines > ranks)
    return bad("--machines must be 1 to the number of ranks (" + std::to_string(ranks) + ")");
  constexpr int64_t kMaxCostNs = 3'600'000'000'000;
  for (const int64_t cost :
       {o.costs.forward_ns, o.costs.backward_ns, o.costs.input_ns, o.costs.weight_ns, o.costs.overlapped_ns})
    if (cost <= 0 || cost > kMaxCostNs) return bad("a cost must be above 0 and at most an hour");
  for (const int64_t cost : {o.optimizer_ns, o.costs.latency_ns, o.clock_skew_ns, o.step_gap_ns, o.reduce_ns})
    if (cost < 0 || cost > kMaxCostNs) return bad("a time must be 0 to an hour");
  if (!(o.jitter >= 0 && o.jitter <= 1)) return bad("--jitter is a share between 0 and 1");
  int64_t cells = 0;
  for (const RankOrder& order : o.schedule.ranks) cells += static_cast<int64_t>(order.size());
  if (cells * o.dp * o.peers * o.steps > 50'000'000)
    return bad("more than 50 000 000 cells; ask for fewer steps or ranks");
  double factor = 2;  // room for jitter
  for (const Fault& fault : o.faults) factor *= std::max(1.0, fault.factor);
  const double longest_ns = static_cast<double>(std::max({o.costs.forward_ns, o.costs.backward_ns, o.costs.input_ns,
                                                          o.costs.weight_ns, o.costs.overlapped_ns})) *
                            factor;
  const double most_ns =
      static_cast<double>(o.steps) *
      (static_cast<double>(cells) * (longest_ns + static_cast<double>(o.costs.latency_ns)) +
       static_cast<double>(o.optimizer_ns) * factor + static_cast<double>(o.step_gap_ns + o.reduce_ns));
  if (most_ns > 2e18)
    return bad("the run could last longer than 60 years; ask for fewer steps, cells or smaller costs");
  for (const Fault& fault : o.faults) {
    const int64_t most = fault.kind == "slow-stage" ? o.schedule.sizes.stages : ranks;
    if (fault.target < 0 || fault.target >= most)
      return bad("--fault " + fault.kind + ":" + std::to_string(fault.target) + " names a " +
                 (fault.kind == "slow-stage" ? "stage" : "rank") + " that the run does not have (0 to " +
                 std::to_string(most - 1) + ")");
  }
  return {};
}

}  // namespace

Result<Fault> parse_fault(std::string_view text) {
  const Error bad{ErrorCode::kUsage,
                  "\"" + std::string(text) + "\" is not a fault",
                  {},
                  "write slow-stage:STAGE,FACTOR or slow-rank:RANK,FACTOR, such as slow-stage:2,1.3"};
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return bad;
  Fault fault{dashed(text.substr(0, colon)), 0, 1};
  const auto parts = split(text.substr(colon + 1), ',');
  if ((fault.kind != "slow-stage" && fault.kind != "slow-rank") || parts.size() != 2) return bad;
  const auto target = parse_int(trim(parts[0]));
  const auto factor = parse_double(trim(parts[1]));
  if (!target || *target < 0 || *target > INT32_MAX || !factor || *factor <= 0 || *factor > 1000) return bad;
  fault.target = static_cast<int32_t>(*target);
  fault.factor = *factor;
  return fault;
}

Result<SimulatedRun> simulate_run(const SimulateOptions& o) {
  if (Status s = check(o); !s) return std::move(s).error();
  const int32_t p = o.schedule.sizes.stages;
  const int32_t grid = p * o.dp, ranks = grid * o.peers;
  // Blocks of ranks as equal as they can be: no machine stays empty.
  const auto machine_of = [&](int32_t rank) { return static_cast<int32_t>(int64_t{rank} * o.machines / ranks); };
  SimulatedRun run;
  run.trace.format = "simulated";
  run.trace.pipeline_stages = p;
  run.trace.clock = o.machines > 1 ? ClockState::kUnaligned : ClockState::kShared;

  Random random{o.seed};
  for (int32_t machine = 0; machine < o.machines; ++machine)
    run.clock_offset_ns.push_back(
        std::llround((random.uniform() * 2 - 1) * static_cast<double>(o.clock_skew_ns) / 1000.0) * 1000);
  std::vector<int32_t> place(static_cast<size_t>(ranks));  // rank → dp · stages + stage
  for (int32_t i = 0; i < ranks; ++i)
    place[static_cast<size_t>(o.rank_of.empty() ? i : o.rank_of[static_cast<size_t>(i)])] = i / o.peers;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    Part part;
    part.rank = rank;
    part.machine = machine_of(rank);
    part.device = rank > 0 && machine_of(rank - 1) == part.machine ? run.trace.parts.back().device + 1 : 0;
    part.stage = place[static_cast<size_t>(rank)] % p;
    part.dp = place[static_cast<size_t>(rank)] / p;
    if (o.machines > 1) part.machine_name = "machine" + std::to_string(part.machine);
    run.trace.parts.push_back(std::move(part));
  }
  std::vector<double> slowness(static_cast<size_t>(grid), 1);  // by dp · stages + stage
  for (const Fault& fault : o.faults)
    for (int32_t i = 0; i < grid; ++i)
      if (fault.kind == "slow-stage" ? i % p == fault.target : i == place[static_cast<size_t>(fault.target)])
        slowness[static_cast<size_t>(i)] *= fault.factor;
  // Worker logs carry whole microseconds (gettimeofday), so a simulated clock ticks in them too.
  const auto cost_ns = [&](int64_t usual_ns, double factor) {
    const double mean = static_cast<double>(usual_ns) * factor;
    const double jittered = o.jitter > 0 ? mean * std::max(0.1, 1 + o.jitter * random.normal()) : mean;
    return std::max<int64_t>(1000, std::llround(jittered / 1000.0) * 1000);
  };

  int64_t step_start = o.start_ns;
  for (int32_t step = 0; step < o.steps; ++step) {
    int64_t step_end = step_start;
    std::vector<std::vector<std::vector<ReplayedCell>>> replicas;
    for (int32_t dp = 0; dp < o.dp; ++dp) {
      ReplayCosts costs;
      costs.latency_ns = o.costs.latency_ns;
      costs.cell_ns = [&](int32_t stage, const ScheduleCell& cell) {
        return cost_ns(o.costs.of(cell), slowness[static_cast<size_t>(dp * p + stage)]);
      };
      auto times = replay(o.schedule, costs);
      if (!times) return std::move(times).error();
      for (const auto& rank_times : *times)
        if (!rank_times.empty()) step_end = std::max(step_end, step_start + rank_times.back().end_ns);
      replicas.push_back(std::move(*times));
    }
    step_end += o.reduce_ns;
    // The optimizer waits for every rank (gradient-norm clip).
    std::vector<int64_t> optimizer_ns;  // by dp · stages + stage
    for (int32_t i = 0; i < grid && o.optimizer_ns > 0; ++i)
      optimizer_ns.push_back(cost_ns(o.optimizer_ns, slowness[static_cast<size_t>(i)]));
    int64_t optimizer_end = step_end;
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const Part& part = run.trace.parts[static_cast<size_t>(rank)];
      const int64_t offset = run.clock_offset_ns[static_cast<size_t>(part.machine)];
      const auto& times = replicas[static_cast<size_t>(part.dp)][static_cast<size_t>(part.stage)];
      const RankOrder& order = o.schedule.ranks[static_cast<size_t>(part.stage)];
      for (size_t i = 0; i < times.size(); ++i)
        for (const Action& action : order[i].actions())
          run.trace.cells.add({step, rank, action.kind, action.chunk, action.micro_batch,
                               step_start + times[i].start_ns + offset, step_start + times[i].end_ns + offset,
                               kNoSlice});
      if (o.optimizer_ns > 0) {
        const int64_t end = step_end + optimizer_ns[static_cast<size_t>(place[static_cast<size_t>(rank)])];
        run.trace.cells.add({step, rank, CellKind::kOptimizer, 0, kUnknown, step_end + offset, end + offset, kNoSlice});
        optimizer_end = std::max(optimizer_end, end);
      }
    }
    step_start = optimizer_end + o.step_gap_ns;
  }
  return run;
}

}  // namespace stageline
