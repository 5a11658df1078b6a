#include "pipeline/replay/replay.h"

namespace stageline {
namespace {

// When F and I or B of each (micro-batch, virtual stage) end, or when what they send arrives; −1 while they have not
// run.
struct Done {
  explicit Done(size_t slots) : forward(slots, -1), backward(slots, -1) {}
  std::vector<int64_t> forward, backward;
};

class Replay {
 public:
  Replay(const Schedule& schedule, const ReplayCosts& costs)
      : schedule_(schedule), costs_(costs), ranks_(schedule.ranks.size()),
        virtual_stages_(virtual_stage_count(schedule)), two_ways_(schedule.layout == ChunkLayout::kBidirectional),
        rank_of_(static_cast<size_t>(virtual_stages_) * (two_ways_ ? 2 : 1)), done_(slots()),
        arrived_(costs.arrival_ns ? slots() : 0), result_(ranks_), free_at_(ranks_, 0), is_awake_(ranks_, true) {
    for (size_t r = 0; r < ranks_; ++r)
      for (int32_t c = 0; c < schedule.sizes.chunks; ++c)
        rank_of_[holder(virtual_stage(schedule, static_cast<int32_t>(r), c), c)] = static_cast<int32_t>(r);
    for (size_t r = ranks_; r-- > 0;) awake_.push_back(static_cast<int32_t>(r));
  }

  Result<std::vector<std::vector<ReplayedCell>>> run() {
    while (!awake_.empty()) {
      const int32_t rank = awake_.back();
      awake_.pop_back();
      is_awake_[rank] = false;
      run_rank(rank);
    }
    for (size_t r = 0; r < ranks_; ++r)
      if (result_[r].size() < schedule_.ranks[r].size())
        return make_error(
            ErrorCode::kBadInput,
            "the schedule deadlocks: rank " + std::to_string(r) + " waits for ever at position " +
                std::to_string(result_[r].size()) + ", " + cell_text(schedule_.ranks[r][result_[r].size()]),
            "choose other sizes; for vpp, micro-batches a multiple of the group and the group no smaller than "
            "the stages");
    return std::move(result_);
  }

 private:
  size_t slots() const { return virtual_stages_ * static_cast<size_t>(schedule_.sizes.micro_batches); }
  size_t slot(int32_t mb, int32_t stage) const { return mb * static_cast<size_t>(virtual_stages_) + stage; }
  // Where the rank stands that holds a virtual stage; with two directions it also depends on the chunk.
  size_t holder(int32_t stage, int32_t chunk) const {
    return stage + (two_ways_ && chunk == 1 ? static_cast<size_t>(virtual_stages_) : 0);
  }
  int32_t rank_of(int32_t stage, int32_t chunk) const { return rank_of_[holder(stage, chunk)]; }

  // Runs the cells of a rank up to the first one whose inputs are not ready.
  void run_rank(int32_t rank) {
    const size_t r = rank;
    result_[r].reserve(schedule_.ranks[r].size());
    while (result_[r].size() < schedule_.ranks[r].size()) {
      const ScheduleCell& cell = schedule_.ranks[r][result_[r].size()];
      int64_t start = free_at_[r];
      bool ready = true;
      for (const Action& action : cell.actions()) {
        const int64_t at = ready_at(rank, action);
        ready &= at >= 0;
        start = std::max(start, at);
      }
      if (!ready) return;
      if (costs_.delay_ns) start += costs_.delay_ns(rank, cell);
      const int64_t end = start + costs_.cell_ns(rank, cell);
      result_[r].push_back({start, end});
      free_at_[r] = end;
      for (const Action& action : cell.actions()) finish(rank, action, end);
    }
  }

  // Returns the earliest start that the dependencies of one action allow; −1 while one of them has not run.
  int64_t ready_at(int32_t rank, const Action& action) const {
    const int32_t stage = virtual_stage(schedule_, rank, action.chunk);
    const auto after = [&](const std::vector<int64_t>& ends, const std::vector<int64_t>& arrivals,
                           int32_t other_stage) -> int64_t {
      const size_t at = slot(action.micro_batch, other_stage);
      if (ends[at] < 0 || rank_of(other_stage, action.chunk) == rank) return ends[at];
      return costs_.arrival_ns ? arrivals[at] : ends[at] + costs_.latency_ns;
    };
    switch (action.kind) {
      case CellKind::kForward: return stage == 0 ? 0 : after(done_.forward, arrived_.forward, stage - 1);
      case CellKind::kWeightGrad: return done_.backward[slot(action.micro_batch, stage)];
      default:
        return stage == virtual_stages_ - 1 ? done_.forward[slot(action.micro_batch, stage)]
                                            : after(done_.backward, arrived_.backward, stage + 1);
    }
  }

  void finish(int32_t rank, const Action& action, int64_t end_ns) {
    if (action.kind == CellKind::kWeightGrad) return;
    const int32_t stage = virtual_stage(schedule_, rank, action.chunk);
    const bool forward = action.kind == CellKind::kForward;
    (forward ? done_.forward : done_.backward)[slot(action.micro_batch, stage)] = end_ns;
    const int32_t to_stage = forward ? stage + 1 : stage - 1;
    if (to_stage < 0 || to_stage >= virtual_stages_) return;
    const int32_t to = rank_of(to_stage, action.chunk);
    if (costs_.arrival_ns && to != rank)
      (forward ? arrived_.forward : arrived_.backward)[slot(action.micro_batch, stage)] =
          costs_.arrival_ns(rank, to, action, end_ns);
    if (is_awake_[to]) return;
    is_awake_[to] = true;
    awake_.push_back(to);
  }

  const Schedule& schedule_;
  const ReplayCosts& costs_;
  size_t ranks_;
  int32_t virtual_stages_;
  bool two_ways_;
  std::vector<int32_t> rank_of_;
  Done done_, arrived_;
  std::vector<std::vector<ReplayedCell>> result_;
  std::vector<int64_t> free_at_;
  // The ranks that may be able to go on. When a cell ends, the ranks that its message goes to are woken.
  std::vector<int32_t> awake_;
  std::vector<bool> is_awake_;
};

}  // namespace

Result<std::vector<std::vector<ReplayedCell>>> replay(const Schedule& schedule, const ReplayCosts& costs) {
  return Replay(schedule, costs).run();
}

}  // namespace stageline
