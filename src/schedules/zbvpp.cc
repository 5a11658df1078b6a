// ZBVPP: two chunks a rank in a V, planned greedily with a cost model, as Paddle's ZBVPP pass does it (without its
// memory limit). The planner keeps a clock per rank and puts jobs on it:
//
//   1. one F0 on every rank; then, from the turn upwards, F1, filling the wait before it with F0s
//   2. forwards into the wait before the first backwards, alternating the chunks
//   3. until rank 0 has all its backwards, round after round: every rank puts one I (the lowest chunk that can run),
//      then one F (the highest). Before either, pending W go into the wait if it is long enough for one; one more W
//      goes in where the wait would make this rank's bubble the worst
//   4. the pending W
//
// Two switches say whether W may fill the wait before an F, and the wait before an I of the upper chunk. All four plans
// are made. Each is made again with the bubbles that it ended with as an allowance, as long as that helps. The plan
// whose worst bubble is least wins.
#include "base/error_words.h"
#include "schedules/build.h"

namespace stageline::zbvpp {

constexpr int32_t kChunks = 2;
constexpr int kMaxRounds = 32;  // how often to plan again with an allowance; in practice once or twice helps

class Planner {
 public:
  explicit Planner(const ScheduleSizes& sizes) : p_(sizes.stages), m_(sizes.micro_batches), cost_(sizes.plan) {
    const auto slots = p_ * static_cast<size_t>(m_) * kChunks;
    forward_end_.resize(slots);
    input_end_.resize(slots);
  }

  struct Plan {
    bool fill_before_f = false, fill_before_i = false;
    std::vector<int64_t> allowance;  // the allowance it was made with
    std::vector<int64_t> bubbles;
    int64_t worst = 0;
  };

  // Returns nullopt when no job can run any more although some are left. With `orders` the jobs are written there;
  // plans are compared without it, since millions of cells would be written in vain.
  std::optional<Plan> plan(bool fill_before_f, bool fill_before_i, const std::vector<int64_t>& allowance,
                           std::vector<RankOrder>* orders = nullptr) {
    orders_ = orders;
    if (orders) {
      orders->assign(p_, {});
      for (RankOrder& order : *orders) order.reserve(static_cast<size_t>(m_) * 3 * kChunks);
    }
    reset(allowance);
    for (int32_t r = 0; r < p_; ++r) put(CellKind::kForward, 0, r);
    fill_before_first(CellKind::kForward, 1);
    fill_before_first(CellKind::kInputGrad, kChunks);
    const int64_t all = int64_t{m_} * kChunks;
    while (inputs(0, 0) + int64_t{inputs(0, 1)} < all) {
      bool moved = false;
      for (int32_t r = 0; r < p_; ++r)
        for (int32_t c = 0; c < kChunks; ++c)
          if (can_run(CellKind::kInputGrad, c, r)) {
            put_after_weights(CellKind::kInputGrad, c, r, c == 0 || fill_before_i);
            moved = true;
            break;
          }
      for (int32_t r = 0; r < p_; ++r)
        for (int32_t c = kChunks - 1; c >= 0; --c)
          if (can_run(CellKind::kForward, c, r)) {
            put_after_weights(CellKind::kForward, c, r, fill_before_f);
            moved = true;
            break;
          }
      if (!moved) return std::nullopt;
    }
    for (int32_t r = 0; r < p_; ++r)
      while (!rank(r).pending.empty()) put_weight(r);
    Plan done{fill_before_f, fill_before_i, allowance, {}, 0};
    for (const Rank& one : ranks_) done.bubbles.push_back(one.bubble);
    done.worst = worst_bubble_;
    return done;
  }

 private:
  struct Rank {
    int64_t now = 0, bubble = 0;
    int32_t forwards[kChunks] = {}, inputs[kChunks] = {};
    int32_t last_chunk = 0;      // chunk of its last job
    std::deque<Action> pending;  // the W that are due
  };

  Rank& rank(int32_t r) { return ranks_[r]; }
  int32_t forwards(int32_t r, int32_t c) { return rank(r).forwards[c]; }
  int32_t inputs(int32_t r, int32_t c) { return rank(r).inputs[c]; }
  int32_t all_forwards(int32_t r, int32_t chunks) {
    int32_t sum = 0;
    for (int32_t c = 0; c < chunks; ++c) sum += forwards(r, c);
    return sum;
  }
  int64_t cost(CellKind kind) const {
    return kind == CellKind::kForward ? cost_.forward : kind == CellKind::kInputGrad ? cost_.input : cost_.weight;
  }
  int64_t& end_of(CellKind kind, int32_t c, int32_t r, int32_t mb) {
    const size_t at = (c * static_cast<size_t>(p_) + r) * m_ + mb;
    return kind == CellKind::kForward ? forward_end_[at] : input_end_[at];
  }

  void reset(const std::vector<int64_t>& allowance) {
    std::ranges::fill(forward_end_, -1);
    std::ranges::fill(input_end_, -1);
    ranks_.assign(p_, {});
    worst_bubble_ = 0;
    allowance_ = allowance;
    max_allowed_ = *std::ranges::max_element(allowance_);
  }

  // Returns the end of the job on the neighbouring rank that this one waits for: 0 at the ends of the V, where there is
  // none. It is −1 while that job has not been planned. Odd chunks are on the way back, so their forwards go to lower
  // ranks.
  int64_t dependency_end(CellKind kind, int32_t c, int32_t r) {
    const bool from_above = (kind == CellKind::kForward) == (c % 2 == 0);
    const int32_t other = from_above ? r - 1 : r + 1;
    if (other < 0 || other >= p_) return 0;
    const int32_t mb = kind == CellKind::kForward ? forwards(r, c) : inputs(r, c);
    return mb < m_ ? end_of(kind, c, other, mb) : -1;
  }

  bool can_run(CellKind kind, int32_t c, int32_t r) {
    const bool forward = kind == CellKind::kForward;
    const int32_t next = forward ? forwards(r, c) : inputs(r, c);
    if (next >= m_) return false;
    if (forward && c > 0 && forwards(r, c - 1) <= next) return false;
    if (!forward && c < kChunks - 1 && inputs(r, c + 1) <= next) return false;
    if (!forward && forwards(r, c) <= next) return false;
    return dependency_end(kind, c, r) >= 0;
  }

  void put(CellKind kind, int32_t c, int32_t r) {
    Rank& own = rank(r);
    const bool forward = kind == CellKind::kForward;
    const int64_t ready = dependency_end(kind, c, r) + cost_.latency;
    const int64_t start = std::max(own.now, ready);
    // A rank has nothing to do before its first forward, so that wait is not counted.
    if (own.forwards[0] > 0) {
      own.bubble += start - own.now;
      worst_bubble_ = std::max(worst_bubble_, own.bubble);
    }
    own.now = start + cost(kind);
    const int32_t mb = forward ? own.forwards[c]++ : own.inputs[c]++;
    end_of(kind, c, r, mb) = own.now;
    own.last_chunk = c;
    if (orders_) push((*orders_)[r], kind, mb, c);
    if (!forward) own.pending.push_back({CellKind::kWeightGrad, mb, c});
  }

  void put_weight(int32_t r) {
    Rank& own = rank(r);
    if (orders_) (*orders_)[r].emplace_back(own.pending.front());
    own.pending.pop_front();
    own.now += cost_.weight;
  }

  void put_after_weights(CellKind kind, int32_t c, int32_t r, bool fill) {
    Rank& own = rank(r);
    const int64_t ready = dependency_end(kind, c, r) + cost_.latency;
    while (!own.pending.empty() && ready >= own.now + cost_.weight) put_weight(r);
    const int64_t worst = std::max(worst_bubble_, max_allowed_ - allowance_[r]);
    if (fill && !own.pending.empty() && ready - own.now > worst - own.bubble) put_weight(r);
    put(kind, c, r);
  }

  // Returns true when the next forward of a chunk would end by `limit`.
  bool in_time(int32_t c, int32_t r, int64_t limit) {
    return std::max(rank(r).now, dependency_end(CellKind::kForward, c, r) + cost_.latency) + cost_.forward <= limit;
  }

  // Phase 1 (`kind` is the F of chunk 1, from the turn towards rank 0) and phase 2 (the first I, from rank 0 on). When
  // the first job of that kind reaches rank r is known without planning it: one job and one message later than on the
  // rank before. Until then, forwards of the chunks below `fill_chunks` are put in.
  void fill_before_first(CellKind kind, int32_t fill_chunks) {
    const bool downwards = kind == CellKind::kForward;
    const int32_t first = downwards ? p_ - 1 : 0, step = downwards ? -1 : 1;
    int64_t limit = rank(first).now;
    if (downwards) put(kind, 1, first);
    for (int32_t r = first + step; r >= 0 && r < p_; r += step) {
      limit += cost_.latency + cost(kind);
      fill_until(r, fill_chunks, limit, downwards);
      if (downwards) put(kind, 1, r);
    }
  }

  void fill_until(int32_t r, int32_t chunks, int64_t limit, bool downwards) {
    const int32_t from = downwards ? 0 : p_ - 1, step = downwards ? 1 : -1;
    const int32_t min = downwards ? 0 : all_forwards(0, chunks);
    int32_t c = (rank(r).last_chunk + 1) % chunks;
    int32_t idle = 0;  // chunks in a row that found no place; a whole round of them ends the loop
    while (idle < chunks) {
      if (all_forwards(r, chunks) >= min && !(room_left(r, chunks) && in_time(chunks - 1, r, limit))) return;
      ++idle;
      for (int32_t i = from; i != r + step; i += step) {
        if (!can_run(CellKind::kForward, c, i)) continue;
        if (all_forwards(i, chunks) >= min && !in_time(c, i, limit)) continue;
        put(CellKind::kForward, c, i);
        idle = 0;
      }
      c = (c + 1) % chunks;
    }
  }
  bool room_left(int32_t r, int32_t chunks) { return all_forwards(r, chunks) < int64_t{m_} * chunks; }

  int32_t p_, m_;
  PlanCosts cost_;
  std::vector<int64_t> forward_end_, input_end_;  // index [chunk][rank][micro-batch]; −1 while not planned
  std::vector<Rank> ranks_;
  std::vector<RankOrder>* orders_ = nullptr;
  std::vector<int64_t> allowance_;
  int64_t worst_bubble_ = 0, max_allowed_ = -1;
};

Result<Schedule> make(const ScheduleSizes& sizes) {
  Planner planner(sizes);
  std::optional<Planner::Plan> best;
  for (const bool fill_before_i : {true, false})
    for (const bool fill_before_f : {true, false}) {
      auto plan = planner.plan(fill_before_f, fill_before_i, std::vector<int64_t>(sizes.stages, -1));
      for (int round = 0; plan && round < kMaxRounds; ++round) {
        auto again = planner.plan(fill_before_f, fill_before_i, plan->bubbles);
        if (!again || again->worst >= plan->worst) break;
        plan = std::move(again);
      }
      if (plan && (!best || plan->worst < best->worst)) best = std::move(plan);
    }
  if (!best) return worded_error(ErrorCode::kUsage, "order.no_plan", {}, {}, "choose other sizes, or zb-v");
  Schedule schedule{"zbvpp", sizes, ChunkLayout::kV};
  planner.plan(best->fill_before_f, best->fill_before_i, best->allowance, &schedule.ranks);
  return schedule;
}

double bubble_ns(const ScheduleSizes&, const UnitCosts&) { return 0; }
int64_t activations(const ScheduleSizes& sizes, int32_t) { return 2 * int64_t{sizes.micro_batches}; }

}  // namespace stageline::zbvpp
