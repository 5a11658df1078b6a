#include "pipeline/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "pipeline/replay/replay.h"
#include "pipeline/simulate/simulate_faults.h"

namespace stageline {
namespace {

// Random numbers by SplitMix64, with an approximate normal distribution (a sum of twelve uniforms). They are the same
// on every platform, which <random>'s distributions do not promise.
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
  if (Status faults = check_faults(o); !faults) return faults;
  const FaultLimits limits = fault_limits(o);
  const double factor = 2 * limits.factor;  // leaves room for jitter
  const double longest_ns = static_cast<double>(std::max({o.costs.forward_ns, o.costs.backward_ns, o.costs.input_ns,
                                                          o.costs.weight_ns, o.costs.overlapped_ns})) *
                            factor;
  const double max_ns =
      static_cast<double>(o.steps) *
      (static_cast<double>(cells) *
           (longest_ns + static_cast<double>(limits.cell_ns) + 2 * static_cast<double>(limits.message_ns)) +
       static_cast<double>(o.optimizer_ns) * factor + static_cast<double>(o.step_gap_ns + o.reduce_ns));
  if (max_ns > 2e18) return bad("the run could last longer than 60 years; ask for fewer steps, cells or smaller costs");
  return {};
}

// A message from one rank to another of the same replica; times count from the start of the step.
struct Message {
  int32_t from, to;          // stages
  Action sent;               // the cell whose result it is
  int64_t posted_ns;         // when the receive is posted
  int64_t begin_ns, end_ns;  // when the transfer begins and ends
};

// The links of one replica in one step; each carries one message of a kind at a time.
class LinkTimes {
 public:
  LinkTimes(const Schedule& schedule, std::function<int64_t(int32_t from, int32_t to)> transfer_ns)
      : stages_(static_cast<size_t>(schedule.sizes.stages)),
        transfer_ns_(std::move(transfer_ns)),
        free_ns_(stages_ * stages_ * 2, 0) {}

  int64_t send(int32_t from, int32_t to, const Action& sent, int64_t sent_ns) {
    int64_t& free_ns = free_ns_[(static_cast<size_t>(from) * stages_ + static_cast<size_t>(to)) * 2 +
                                (sent.kind == CellKind::kForward ? 0 : 1)];
    const int64_t begin_ns = std::max(sent_ns, free_ns), end_ns = begin_ns + transfer_ns_(from, to);
    messages.push_back({from, to, sent, free_ns, begin_ns, end_ns});
    free_ns = end_ns;
    return end_ns;
  }

  std::vector<Message> messages;

 private:
  size_t stages_;
  std::function<int64_t(int32_t, int32_t)> transfer_ns_;
  std::vector<int64_t> free_ns_;  // index [from][to][forward, backward]
};

// Returns the chunk, on the receiving stage, that the message goes to.
int32_t receiving_chunk(const Schedule& schedule, const Message& m) {
  if (schedule.layout == ChunkLayout::kBidirectional) return m.sent.chunk;
  const int32_t wanted = virtual_stage(schedule, m.from, m.sent.chunk) + (m.sent.kind == CellKind::kForward ? 1 : -1);
  for (int32_t chunk = 0; chunk < schedule.sizes.chunks; ++chunk)
    if (virtual_stage(schedule, m.to, chunk) == wanted) return chunk;
  return m.sent.chunk;
}

// A receive is posted when the previous cell of its direction has ended and the previous receive is complete. If its
// message comes earlier than that, it is posted in time for the message.
void post_receives(const Schedule& schedule, const std::vector<std::vector<ReplayedCell>>& times,
                   std::vector<Message>& messages) {
  const auto chunks = static_cast<size_t>(schedule.sizes.chunks);
  const auto micro_batches = static_cast<size_t>(schedule.sizes.micro_batches);
  std::vector<int64_t> ready_ns(schedule.ranks.size() * 2 * chunks * micro_batches, 0);
  const auto ready = [&](size_t stage, const Action& action, int32_t chunk) -> int64_t& {
    const size_t way = action.kind == CellKind::kForward ? 0 : 1;
    return ready_ns[((stage * 2 + way) * chunks + static_cast<size_t>(chunk)) * micro_batches +
                    static_cast<size_t>(action.micro_batch)];
  };
  for (size_t stage = 0; stage < schedule.ranks.size(); ++stage) {
    int64_t before[2] = {0, 0};
    for (size_t i = 0; i < schedule.ranks[stage].size(); ++i)
      for (const Action& action : schedule.ranks[stage][i].actions()) {
        if (action.kind == CellKind::kWeightGrad) continue;
        int64_t& last = before[action.kind == CellKind::kForward ? 0 : 1];
        ready(stage, action, action.chunk) = last;
        last = times[stage][i].end_ns;
      }
  }
  for (Message& m : messages)
    m.posted_ns = std::min(
        m.begin_ns, std::max(m.posted_ns, ready(static_cast<size_t>(m.to), m.sent, receiving_chunk(schedule, m))));
}

}  // namespace

Result<SimulatedRun> simulate_run(const SimulateOptions& o) {
  if (Status s = check(o); !s) return std::move(s).error();
  const int32_t p = o.schedule.sizes.stages;
  const int32_t grid = p * o.dp, ranks = grid * o.peers;
  // Blocks of ranks are as equal as possible, so that no machine stays empty.
  const auto machine_of = [&](int32_t rank) { return static_cast<int32_t>(int64_t{rank} * o.machines / ranks); };
  Result<Schedule> order_that_runs = faulty_order(o);
  if (!order_that_runs) return std::move(order_that_runs).error();
  SimulatedRun run;
  run.schedule = std::move(*order_that_runs);
  run.trace.format = "simulated";
  run.trace.pipeline_stages = p;
  run.trace.clock = o.machines > 1 ? ClockState::kUnaligned : ClockState::kShared;

  Random random{o.seed};
  for (int32_t machine = 0; machine < o.machines; ++machine)
    run.clock_offset_ns.push_back(
        std::llround((random.uniform() * 2 - 1) * static_cast<double>(o.clock_skew_ns) / 1000.0) * 1000);
  std::vector<int32_t> place(static_cast<size_t>(ranks));  // rank → dp · stages + stage
  for (int32_t i = 0; i < ranks; ++i) place[o.rank_of.empty() ? i : o.rank_of[i]] = i / o.peers;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    Part part;
    part.rank = rank;
    part.machine = machine_of(rank);
    part.device = rank > 0 && machine_of(rank - 1) == part.machine ? run.trace.parts.back().device + 1 : 0;
    part.stage = place[rank] % p;
    part.dp = place[rank] / p;
    if (o.machines > 1) part.machine_name = "machine" + std::to_string(part.machine);
    run.trace.parts.push_back(std::move(part));
  }
  const FaultModel faults(o, place);
  // Worker logs hold whole microseconds (gettimeofday), so simulated times are whole microseconds too.
  const auto cost_ns = [&](int64_t usual_ns, double factor) {
    const double mean = static_cast<double>(usual_ns) * factor;
    const double jittered = o.jitter > 0 ? mean * std::max(0.1, 1 + o.jitter * random.normal()) : mean;
    return std::max<int64_t>(1000, std::llround(jittered / 1000.0) * 1000);
  };

  // A generator of its own, so that messages change no other random number.
  Random link_random{o.seed ^ 0x6c696e6b73ULL};
  const auto transfer_ns = [&](int32_t dp, int32_t from, int32_t to) {
    const auto mean = static_cast<double>(faults.transfer_ns(dp, from, to));
    const double jittered = o.jitter > 0 ? mean * std::max(0.1, 1 + o.jitter * link_random.normal()) : mean;
    return int64_t{std::llround(jittered / 1000.0) * 1000};
  };

  int64_t step_start = o.start_ns;
  for (int32_t step = 0; step < o.steps; ++step) {
    int64_t step_end = step_start;
    std::vector<std::vector<std::vector<ReplayedCell>>> replicas;
    std::vector<std::vector<Message>> messages;                          // for each replica
    std::vector<int64_t> stage_end(static_cast<size_t>(p), step_start);  // on the slowest replica
    for (int32_t dp = 0; dp < o.dp; ++dp) {
      LinkTimes links(run.schedule, [&](int32_t from, int32_t to) { return transfer_ns(dp, from, to); });
      ReplayCosts costs;
      costs.latency_ns = o.costs.latency_ns;
      costs.cell_ns = [&](int32_t stage, const ScheduleCell& cell) {
        return cost_ns(o.costs.of(cell), faults.cell_factor(step, dp, stage, cell));
      };
      if (faults.delays())
        costs.delay_ns = [&](int32_t stage, const ScheduleCell& cell) {
          return faults.delay_ns(step, dp, stage, cell);
        };
      if (o.messages)
        costs.arrival_ns = [&](int32_t from, int32_t to, const Action& sent, int64_t sent_ns) {
          return links.send(from, to, sent, sent_ns);
        };
      else if (faults.slow_links())
        costs.arrival_ns = [&](int32_t from, int32_t to, const Action&, int64_t sent_ns) {
          return sent_ns + faults.transfer_ns(dp, from, to);
        };
      auto times = replay(run.schedule, costs);
      if (!times) return std::move(times).error();
      for (size_t stage = 0; stage < times->size(); ++stage)
        if (!(*times)[stage].empty())
          stage_end[stage] = std::max(stage_end[stage], step_start + (*times)[stage].back().end_ns);
      post_receives(run.schedule, *times, links.messages);
      replicas.push_back(std::move(*times));
      messages.push_back(std::move(links.messages));
    }
    step_end = *std::max_element(stage_end.begin(), stage_end.end()) + o.reduce_ns;
    // The optimizer waits for every rank, as clipping by the norm of all gradients makes it.
    std::vector<int64_t> optimizer_ns;  // index dp · stages + stage
    for (int32_t i = 0; i < grid && o.optimizer_ns > 0; ++i)
      optimizer_ns.push_back(cost_ns(o.optimizer_ns, faults.optimizer_factor(step, i)));
    int64_t optimizer_end = step_end;
    std::vector<std::vector<Cell>> message_cells(static_cast<size_t>(grid));
    for (int32_t dp = 0; dp < o.dp; ++dp)
      for (const Message& m : messages[dp]) {
        const bool forward = m.sent.kind == CellKind::kForward;
        message_cells[dp * p + m.from].push_back({step, 0, forward ? CellKind::kSendForward : CellKind::kSendBackward,
                                                  m.sent.chunk, m.sent.micro_batch, m.begin_ns, m.end_ns, kNoSlice});
        message_cells[dp * p + m.to].push_back({step, 0, forward ? CellKind::kRecvForward : CellKind::kRecvBackward,
                                                receiving_chunk(run.schedule, m), m.sent.micro_batch, m.posted_ns,
                                                m.end_ns, kNoSlice});
      }
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const Part& part = run.trace.parts[rank];
      const auto own_place = static_cast<size_t>(place[rank]);
      const int64_t offset = run.clock_offset_ns[part.machine];
      const auto& times = replicas[part.dp][part.stage];
      const RankOrder& order = run.schedule.ranks[part.stage];
      std::vector<Cell> own;
      for (size_t i = 0; i < times.size(); ++i)
        for (const Action& action : order[i].actions())
          own.push_back({step, rank, action.kind, action.chunk, action.micro_batch, step_start + times[i].start_ns,
                         step_start + times[i].end_ns, kNoSlice});
      if (o.messages) {
        for (Cell cell : message_cells[own_place]) {
          cell.part = rank;
          cell.start_ns += step_start;
          cell.end_ns += step_start;
          own.push_back(cell);
        }
        std::stable_sort(own.begin(), own.end(), [](const Cell& a, const Cell& b) { return a.start_ns < b.start_ns; });
      }
      if (o.collectives && o.reduce_ns > 0 && !times.empty())
        own.push_back({step, rank, CellKind::kCollective, 0, kUnknown, step_start + times.back().end_ns,
                       stage_end[part.stage] + o.reduce_ns, kNoSlice});
      if (o.optimizer_ns > 0) {
        const int64_t end = step_end + optimizer_ns[own_place];
        own.push_back({step, rank, CellKind::kOptimizer, 0, kUnknown, step_end, end, kNoSlice});
        optimizer_end = std::max(optimizer_end, end);
      }
      for (Cell& cell : own) {
        cell.start_ns += offset;
        cell.end_ns += offset;
        run.trace.cells.add(cell);
      }
    }
    step_start = optimizer_end + o.step_gap_ns;
  }
  return run;
}

}  // namespace stageline
