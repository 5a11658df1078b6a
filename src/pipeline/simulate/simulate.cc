#include "pipeline/simulate/simulate.h"

#include "pipeline/replay/replay.h"

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
  double uniform() { return (next() >> 11) * 0x1.0p-53; }
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }
};

Status check(const SimulateOptions& options) {
  const auto bad = [](std::string what) { return make_error(ErrorCode::kUsage, std::move(what)); };
  const int64_t ranks = int64_t{options.schedule.sizes.stages} * options.dp * options.peers;
  if (options.peers < 1 || ranks > 1'000'000) return bad("more than 1 000 000 ranks, or none");
  if (!options.rank_of.empty() && std::ssize(options.rank_of) != ranks) return bad("not every rank has a number");
  if (options.dp < 1 || options.dp > 4096) return bad("--dp must be 1 to 4096");
  if (options.steps < 1 || options.steps > 100'000) return bad("--steps must be 1 to 100000");
  if (options.machines < 1 || options.machines > ranks)
    return bad("--machines must be 1 to the number of ranks (" + std::to_string(ranks) + ")");
  constexpr int64_t kMaxCostNs = 3'600'000'000'000;
  for (const int64_t cost : {options.costs.forward_ns, options.costs.backward_ns, options.costs.input_ns,
                             options.costs.weight_ns, options.costs.overlapped_ns})
    if (cost <= 0 || cost > kMaxCostNs) return bad("a cost must be above 0 and at most an hour");
  for (const int64_t cost :
       {options.optimizer_ns, options.costs.latency_ns, options.clock_skew_ns, options.step_gap_ns, options.reduce_ns})
    if (cost < 0 || cost > kMaxCostNs) return bad("a time must be 0 to an hour");
  if (!(options.jitter >= 0 && options.jitter <= 1)) return bad("--jitter is a share between 0 and 1");
  int64_t cells = 0;
  for (const RankOrder& order : options.schedule.ranks) cells += static_cast<int64_t>(order.size());
  if (cells * options.dp * options.peers * options.steps > 50'000'000)
    return bad("more than 50 000 000 cells; ask for fewer steps or ranks");
  TRY_OK(check_faults(options));
  const FaultLimits limits = fault_limits(options);
  const double factor = 2 * limits.factor;  // leaves room for jitter
  const double longest_ns = std::max({options.costs.forward_ns, options.costs.backward_ns, options.costs.input_ns,
                                      options.costs.weight_ns, options.costs.overlapped_ns}) *
                            factor;
  const double max_ns =
      options.steps * (cells * (longest_ns + limits.cell_ns + 2 * static_cast<double>(limits.message_ns)) +
                       options.optimizer_ns * factor + (options.step_gap_ns + options.reduce_ns));
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
      : stages_(schedule.sizes.stages), transfer_ns_(std::move(transfer_ns)), free_ns_(stages_ * stages_ * 2, 0) {}

  int64_t send(int32_t from, int32_t to, const Action& sent, int64_t sent_ns) {
    int64_t& free_ns = free_ns_[(from * stages_ + to) * 2 + (sent.kind == CellKind::kForward ? 0 : 1)];
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
  const size_t chunks = schedule.sizes.chunks;
  const size_t micro_batches = schedule.sizes.micro_batches;
  std::vector<int64_t> ready_ns(schedule.ranks.size() * 2 * chunks * micro_batches, 0);
  const auto ready = [&](size_t stage, const Action& action, int32_t chunk) -> int64_t& {
    const size_t way = action.kind == CellKind::kForward ? 0 : 1;
    return ready_ns[((stage * 2 + way) * chunks + chunk) * micro_batches + action.micro_batch];
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
    m.posted_ns = std::min(m.begin_ns, std::max(m.posted_ns, ready(m.to, m.sent, receiving_chunk(schedule, m))));
}

// One step of every replica; times of cells and messages count from its start.
struct StepTimes {
  int32_t step = 0;
  int64_t start_ns = 0;
  std::vector<std::vector<std::vector<ReplayedCell>>> replicas;  // [replica][stage]
  std::vector<std::vector<Message>> messages;                    // [replica]
  std::vector<int64_t> stage_end_ns;                             // on the slowest replica, on the run's clock
  int64_t end_ns(int64_t reduce_ns) const { return *std::ranges::max_element(stage_end_ns) + reduce_ns; }
};

class Simulation {
 public:
  Simulation(const SimulateOptions& options, Schedule schedule)
      : o_(options), stages_(options.schedule.sizes.stages), ranks_(stages_ * options.dp * options.peers),
        random_{options.seed}, link_random_{options.seed ^ 0x6c696e6b73ULL}, place_(placed(options, ranks_)),
        faults_(options, place_) {
    run_.schedule = std::move(schedule);
    run_.trace.format = "simulated";
    run_.trace.pipeline_stages = stages_;
    run_.trace.clock = options.machines > 1 ? ClockState::kUnaligned : ClockState::kShared;
    add_parts();
  }

  Result<SimulatedRun> run() {
    int64_t start_ns = o_.start_ns;
    for (int32_t step = 0; step < o_.steps; ++step) {
      StepTimes times{step, start_ns, {}, {}, std::vector<int64_t>(stages_, start_ns)};
      for (int32_t dp = 0; dp < o_.dp; ++dp) TRY_OK(replay_replica(dp, times));
      start_ns = add_cells(times) + o_.step_gap_ns;
    }
    return std::move(run_);
  }

 private:
  static std::vector<int32_t> placed(const SimulateOptions& options, int32_t ranks) {
    std::vector<int32_t> place(ranks);
    for (int32_t i = 0; i < ranks; ++i) place[options.rank_of.empty() ? i : options.rank_of[i]] = i / options.peers;
    return place;
  }
  // Blocks of ranks are as equal as possible, so that no machine stays empty.
  int32_t machine_of(int32_t rank) const { return static_cast<int32_t>(int64_t{rank} * o_.machines / ranks_); }

  void add_parts() {
    for (int32_t machine = 0; machine < o_.machines; ++machine)
      run_.clock_offset_ns.push_back(std::llround((random_.uniform() * 2 - 1) * o_.clock_skew_ns / 1000.0) * 1000);
    for (int32_t rank = 0; rank < ranks_; ++rank) {
      Part part;
      part.rank = rank;
      part.machine = machine_of(rank);
      part.device = rank > 0 && machine_of(rank - 1) == part.machine ? run_.trace.parts.back().device + 1 : 0;
      part.stage = place_[rank] % stages_;
      part.dp = place_[rank] / stages_;
      if (o_.machines > 1) part.machine_name = "machine" + std::to_string(part.machine);
      run_.trace.parts.push_back(std::move(part));
    }
  }

  // Worker logs hold whole microseconds (gettimeofday), so simulated times are whole microseconds too.
  int64_t jittered_ns(double mean_ns, Random& random) const {
    const double jittered = o_.jitter > 0 ? mean_ns * std::max(0.1, 1 + o_.jitter * random.normal()) : mean_ns;
    return std::llround(jittered / 1000.0) * 1000;
  }
  int64_t cost_ns(int64_t usual_ns, double factor) {
    return std::max<int64_t>(1000, jittered_ns(usual_ns * factor, random_));
  }
  int64_t transfer_ns(int32_t dp, int32_t from, int32_t to) {
    return jittered_ns(faults_.transfer_ns(dp, from, to), link_random_);
  }

  Status replay_replica(int32_t dp, StepTimes& all) {
    LinkTimes links(run_.schedule, [&](int32_t from, int32_t to) { return transfer_ns(dp, from, to); });
    ReplayCosts costs;
    costs.latency_ns = o_.costs.latency_ns;
    costs.cell_ns = [&](int32_t stage, const ScheduleCell& cell) {
      return cost_ns(o_.costs.of(cell), faults_.cell_factor(all.step, dp, stage, cell));
    };
    if (faults_.delays())
      costs.delay_ns = [&](int32_t stage, const ScheduleCell& cell) {
        return faults_.delay_ns(all.step, dp, stage, cell);
      };
    if (o_.messages)
      costs.arrival_ns = [&](int32_t from, int32_t to, const Action& sent, int64_t sent_ns) {
        return links.send(from, to, sent, sent_ns);
      };
    else if (faults_.slow_links())
      costs.arrival_ns = [&](int32_t from, int32_t to, const Action&, int64_t sent_ns) {
        return sent_ns + faults_.transfer_ns(dp, from, to);
      };
    TRY(times, replay(run_.schedule, costs));
    for (size_t stage = 0; stage < times->size(); ++stage)
      if (!(*times)[stage].empty())
        all.stage_end_ns[stage] = std::max(all.stage_end_ns[stage], all.start_ns + (*times)[stage].back().end_ns);
    post_receives(run_.schedule, *times, links.messages);
    all.replicas.push_back(std::move(*times));
    all.messages.push_back(std::move(links.messages));
    return {};
  }

  // Returns the messages of a step as cells, by dp · stages + stage.
  std::vector<std::vector<Cell>> message_cells(const StepTimes& times) const {
    std::vector<std::vector<Cell>> cells(stages_ * static_cast<size_t>(o_.dp));
    for (int32_t dp = 0; dp < o_.dp; ++dp)
      for (const Message& m : times.messages[dp]) {
        const bool forward = m.sent.kind == CellKind::kForward;
        cells[dp * stages_ + m.from].push_back({times.step, 0,
                                                forward ? CellKind::kSendForward : CellKind::kSendBackward,
                                                m.sent.chunk, m.sent.micro_batch, m.begin_ns, m.end_ns, kNoSlice});
        cells[dp * stages_ + m.to].push_back({times.step, 0, forward ? CellKind::kRecvForward : CellKind::kRecvBackward,
                                              receiving_chunk(run_.schedule, m), m.sent.micro_batch, m.posted_ns,
                                              m.end_ns, kNoSlice});
      }
    return cells;
  }

  // Returns the cells of a rank in a step, but for the optimizer.
  std::vector<Cell> cells_of(int32_t rank, const StepTimes& step, const std::vector<Cell>& messages) const {
    const Part& part = run_.trace.parts[rank];
    const std::vector<ReplayedCell>& times = step.replicas[part.dp][part.stage];
    const RankOrder& order = run_.schedule.ranks[part.stage];
    std::vector<Cell> own;
    for (size_t i = 0; i < times.size(); ++i)
      for (const Action& action : order[i].actions())
        own.push_back({step.step, rank, action.kind, action.chunk, action.micro_batch,
                       step.start_ns + times[i].start_ns, step.start_ns + times[i].end_ns, kNoSlice});
    if (o_.messages) {
      for (Cell cell : messages) {
        cell.part = rank;
        cell.start_ns += step.start_ns;
        cell.end_ns += step.start_ns;
        own.push_back(cell);
      }
      sort_stably(own, {}, &Cell::start_ns);
    }
    if (o_.collectives && o_.reduce_ns > 0 && !times.empty())
      own.push_back({step.step, rank, CellKind::kCollective, 0, kUnknown, step.start_ns + times.back().end_ns,
                     step.stage_end_ns[part.stage] + o_.reduce_ns, kNoSlice});
    return own;
  }

  // Writes a step's cells by the clock of each rank's machine. Returns when its last optimizer ends.
  int64_t add_cells(const StepTimes& step) {
    const int64_t step_end = step.end_ns(o_.reduce_ns);
    // The optimizer waits for every rank, as clipping by the norm of all gradients makes it.
    std::vector<int64_t> optimizer_ns;  // index dp · stages + stage
    for (int32_t i = 0; i < stages_ * o_.dp && o_.optimizer_ns > 0; ++i)
      optimizer_ns.push_back(cost_ns(o_.optimizer_ns, faults_.optimizer_factor(step.step, i)));
    int64_t optimizer_end = step_end;
    const std::vector<std::vector<Cell>> messages = message_cells(step);
    for (int32_t rank = 0; rank < ranks_; ++rank) {
      const size_t own_place = place_[rank];
      std::vector<Cell> own = cells_of(rank, step, messages[own_place]);
      if (o_.optimizer_ns > 0) {
        const int64_t end = step_end + optimizer_ns[own_place];
        own.push_back({step.step, rank, CellKind::kOptimizer, 0, kUnknown, step_end, end, kNoSlice});
        optimizer_end = std::max(optimizer_end, end);
      }
      const int64_t offset = run_.clock_offset_ns[run_.trace.parts[rank].machine];
      for (Cell& cell : own) {
        cell.start_ns += offset;
        cell.end_ns += offset;
        run_.trace.cells.add(cell);
      }
    }
    return optimizer_end;
  }

  const SimulateOptions& o_;
  int32_t stages_, ranks_;
  Random random_;
  Random link_random_;          // a generator of its own, so that messages change no other random number
  std::vector<int32_t> place_;  // rank → dp · stages + stage
  FaultModel faults_;
  SimulatedRun run_;
};

}  // namespace

Result<SimulatedRun> simulate_run(const SimulateOptions& options) {
  TRY_OK(check(options));
  TRY(order, faulty_order(options));
  return Simulation(options, std::move(*order)).run();
}

}  // namespace stageline
