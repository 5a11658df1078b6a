#include "pipeline/replay/theory.h"

#include "base/error_words.h"
#include "base/parallel.h"
#include "model/intervals.h"
#include "schedules/registry.h"

namespace stageline {
namespace {

constexpr size_t kMaxSizes = 4;  // this number of different micro-batch counts per step is replayed
constexpr size_t kKinds = 5;     // F, B, I, W, F&B
constexpr double kLongestNs = 1e18;
// A step is replayed at its own pace only if at least one in this number of the schedule's cells is present.
constexpr size_t kMinFilled = 4;

constexpr double kMinPace = 0.02;
constexpr double kSurePace = 4;

// The speed of a stage in one step, compared with its means over the run.
//
// In a run whose steps differ (in sequence lengths, or through clocks that throttle), every cell of a slow step would
// be late although its order is right. So if a stage's cells differ from the means by more than their own scatter, that
// step's theory takes every stage at its own pace. The pace is the sum of its cells ÷ the sum of their means.
struct StagePace {
  // Adds one cell that has a place in the theory.
  void add(int64_t actual_ns, int64_t mean_ns) {
    const double a = actual_ns, m = mean_ns;
    ++count;
    actual += a;
    mean += m;
    actual_squares += a * a;
    products += a * m;
    mean_squares += m * m;
  }
  double pace() const { return mean > 0 && actual > 0 ? actual / mean : 1; }  // 1 when no cell was added
  // Returns true when the pace differs from 1 by at least kMinPace and by kSurePace times its own standard error, from
  // four cells or more.
  bool sure() const {
    constexpr double kMinCells = 4;
    if (count < kMinCells || !(mean > 0)) return false;
    // Computes the sum of squares of the residuals actual − pace · mean, and from it the standard error of the pace.
    const double p = pace(), squares = std::max(0.0, actual_squares - 2 * p * products + p * p * mean_squares);
    const double error = std::sqrt(squares * count / (count - 1)) / mean;
    return std::abs(p - 1) >= kMinPace && std::abs(p - 1) >= kSurePace * error;
  }

  double count = 0, actual = 0, mean = 0;
  double actual_squares = 0, products = 0, mean_squares = 0;
};

// Mean durations by stage, chunk and kind.
class MeanCosts {
 public:
  MeanCosts(const Cells& cells, const RankLists& lists, int32_t chunks, const std::vector<int32_t>& outliers)
      : chunks_(chunks) {
    sums_.resize(lists.stages * chunks_ * kKinds);
    for (const RankList& list : lists.lists) {
      if (std::ranges::binary_search(outliers, list.step)) continue;
      for (size_t t = list.begin; t < list.end; ++t) {
        const WorkToken& token = lists.tokens[t];
        const size_t i = lists.cell[t];
        if (token.fused && t + 1 < list.end && lists.tokens[t + 1].fused) {
          const size_t j = lists.cell[++t];
          add(list.stage, token.chunk, CellKind::kForwardBackward,
              std::max(cells.end_ns[i], cells.end_ns[j]) - std::min(cells.start_ns[i], cells.start_ns[j]));
        } else {
          add(list.stage, token.chunk, token.kind, cells.dur_ns(i));
        }
      }
    }
  }

  // Returns nullopt for a cost that was neither measured nor follows from others.
  std::optional<double> of(int32_t stage, int32_t chunk, CellKind kind) const {
    if (const auto own = mean(stage, chunk, kind)) return own;
    const auto [b, i, w] = std::tuple(mean(stage, chunk, CellKind::kBackward), mean(stage, chunk, CellKind::kInputGrad),
                                      mean(stage, chunk, CellKind::kWeightGrad));
    switch (kind) {
      case CellKind::kBackward: return i ? std::optional(*i + w.value_or(0)) : std::nullopt;
      case CellKind::kInputGrad: return b;
      case CellKind::kWeightGrad: return b ? std::optional(0.0) : std::nullopt;  // it is part of B
      case CellKind::kForwardBackward: {
        const auto f = of(stage, chunk, CellKind::kForward), back = of(stage, chunk, CellKind::kBackward);
        return f && back ? std::optional(*f + *back) : std::nullopt;
      }
      default: return std::nullopt;
    }
  }

 private:
  struct Sum {
    double ns = 0;
    int64_t count = 0;
  };
  size_t at(int32_t stage, int32_t chunk, CellKind kind) const {
    return (stage * chunks_ + chunk) * kKinds + static_cast<size_t>(kind);
  }
  void add(int32_t stage, int32_t chunk, CellKind kind, int64_t ns) {
    if (chunk < 0 || static_cast<size_t>(chunk) >= chunks_) return;
    Sum& sum = sums_[at(stage, chunk, kind)];
    sum.ns += ns;
    ++sum.count;
  }
  // Returns the mean for this chunk; where the chunk was not seen, that of the stage's other chunks.
  std::optional<double> mean(int32_t stage, int32_t chunk, CellKind kind) const {
    Sum sum = sums_[at(stage, chunk, kind)];
    for (int32_t c = 0; sum.count == 0 && c < static_cast<int32_t>(chunks_); ++c) sum = sums_[at(stage, c, kind)];
    return sum.count > 0 ? std::optional(sum.ns / sum.count) : std::nullopt;
  }

  size_t chunks_;
  std::vector<Sum> sums_;
};

Text cannot_cost(int32_t stage, CellKind kind) {
  return words("theory.no_cost", Args().set("stage", int64_t{stage}).set("kind", std::string(kind_name(kind))));
}

// Replays a schedule at what its cells cost; when a cost is missing, `why_not` says so.
std::optional<TheorySize> replay_at_means(Schedule schedule, const MeanCosts& means, Text& why_not) {
  const ScheduleSizes sizes = schedule.sizes;
  TheorySize size{std::move(schedule), {}, {}};
  // The cost of each (stage, chunk, kind) is kept, since it is asked for millions of times.
  std::vector<int64_t> known(size.schedule.ranks.size() * sizes.chunks * kKinds, -1);
  const auto kind_of = [](const ScheduleCell& cell) {
    return cell.overlapped() ? CellKind::kForwardBackward : cell.actions()[0].kind;
  };
  const auto cost_of = [&](size_t stage, const ScheduleCell& cell) -> int64_t& {
    return known[(stage * sizes.chunks + cell.actions()[0].chunk) * kKinds + static_cast<size_t>(kind_of(cell))];
  };
  for (size_t s = 0; s < size.schedule.ranks.size(); ++s)
    for (const ScheduleCell& cell : size.schedule.ranks[s]) {
      const Action& a = cell.actions()[0];
      const CellKind kind = kind_of(cell);
      int64_t& cost = cost_of(s, cell);
      if (cost >= 0) continue;
      const auto mean = means.of(static_cast<int32_t>(s), a.chunk, kind);
      if (!mean) {
        why_not = cannot_cost(static_cast<int32_t>(s), kind);
        return std::nullopt;
      }
      cost = std::max<int64_t>(0, std::llround(std::min(*mean, kLongestNs)));
    }
  double sum_ns = 0;  // the longest that the replay can take
  for (size_t s = 0; s < size.schedule.ranks.size(); ++s)
    for (const ScheduleCell& cell : size.schedule.ranks[s]) sum_ns += cost_of(s, cell);
  if (sum_ns > kLongestNs) {
    why_not = words("theory.years");
    return std::nullopt;
  }
  ReplayCosts costs;
  costs.cell_ns = [&](int32_t rank, const ScheduleCell& cell) { return cost_of(rank, cell); };
  auto times = replay(size.schedule, costs);
  if (!times) {
    why_not = error_text(times.error());
    return std::nullopt;
  }
  size.times = std::move(*times);
  size.numbers = schedule_numbers(size.schedule, size.times);
  return size;
}

// Replays the recognised schedule with this many micro-batches; pairs that the run ran as one are one cell.
std::optional<TheorySize> replay_size(const ScheduleCandidate& best, int32_t micro_batches, const RankLists& lists,
                                      const MeanCosts& means, Text& why_not) {
  ScheduleSizes sizes = best.sizes;
  sizes.micro_batches = micro_batches;
  Result<Schedule> schedule = make_schedule(best.name, sizes);
  if (!schedule) {
    why_not = error_text(schedule.error());
    return std::nullopt;
  }
  Schedule fused = fuse_pairs(*schedule, lists);
  const bool same = fused.ranks == schedule->ranks;
  auto size = replay_at_means(std::move(fused), means, why_not);
  // Pairs that most lists ran as one need not be possible together; then the schedule is replayed without them.
  return size || same ? std::move(size) : replay_at_means(std::move(*schedule), means, why_not);
}

// Replays lists [first, last) with the stages at this step's own pace; nullopt where the means will do.
std::optional<TheorySize> replay_at_pace(const Trace& trace, const std::vector<SchedulePlaces>& slots, size_t first,
                                         size_t last, const TheoryRun& run) {
  const Cells& cells = trace.cells;
  const TheorySize* size = run.size(first);
  if (!size || run.theory.by_rank) return std::nullopt;
  std::vector<StagePace> stages(size->schedule.ranks.size());
  size_t found = 0, whole = 0;
  for (const RankOrder& order : size->schedule.ranks) whole += order.size();
  for (size_t l = first; l < last; ++l) {
    const RankList& list = run.lists.lists[l];
    if (run.size_of[l] != run.size_of[first]) return std::nullopt;
    for (size_t t = list.begin; t < list.end; ++t) {
      const WorkToken& token = run.lists.tokens[t];
      const int32_t place = slots[run.size_of[l]].find(list.stage, token, t - list.begin);
      const size_t i = run.lists.cell[t];
      const bool pair = token.fused && t + 1 < list.end && run.lists.tokens[t + 1].fused;
      const size_t j = pair ? run.lists.cell[++t] : i;
      if (place == kUnknown) continue;
      const ReplayedCell& mean = size->times[list.stage][place];
      stages[list.stage].add(
          std::max(cells.end_ns[i], cells.end_ns[j]) - std::min(cells.start_ns[i], cells.start_ns[j]),
          mean.end_ns - mean.start_ns);
      ++found;
    }
  }
  std::vector<double> pace;
  for (const StagePace& stage : stages) pace.push_back(stage.pace());
  // A step with few cells does not pay for the replay of a schedule with many, so the work is bounded by the cells
  // there are.
  if (found * kMinFilled < whole || std::ranges::none_of(stages, [](const StagePace& stage) { return stage.sure(); }))
    return std::nullopt;
  double sum_ns = 0;  // the longest that the replay can take
  for (size_t s = 0; s < pace.size(); ++s)
    for (const ReplayedCell& mean : size->times[s]) sum_ns += (mean.end_ns - mean.start_ns) * pace[s];
  if (sum_ns > kLongestNs) return std::nullopt;
  std::vector<size_t> next(pace.size());
  ReplayCosts costs;
  costs.cell_ns = [&](int32_t rank, const ScheduleCell&) {
    const size_t r = rank;
    const ReplayedCell& mean = size->times[r][next[r]++];
    return static_cast<int64_t>(std::llround((mean.end_ns - mean.start_ns) * pace[r]));
  };
  auto times = replay(size->schedule, costs);
  if (!times) return std::nullopt;
  TheorySize own{{}, std::move(*times), {}};
  own.numbers = schedule_numbers(size->schedule, own.times);
  return own;
}

// The data that one step of one replica adds to a theory besides the times of its cells.
struct PlacedLists {
  int64_t without = 0;
  std::vector<size_t> fused;  // indices of cells
  std::optional<TheoryStep> step;
  std::optional<ScheduleNumbers> own_numbers;
};

// Places the replay of lists [first, last) on the time of their cells, such that the first cell starts at its recorded
// start. Writes only the times of these lists' cells.
PlacedLists place_lists(const Trace& trace, const std::vector<SchedulePlaces>& slots, size_t first, size_t last,
                        TheoryRun& run) {
  PlacedLists placed;
  const std::optional<TheorySize> own = replay_at_pace(trace, slots, first, last, run);
  Theory& theory = run.theory;
  // Start in the theory of the first cell that was found; among equal ones the smallest shift.
  int64_t earliest = INT64_MAX, shift = 0;
  Span actual;
  for (size_t l = first; l < last; ++l) {
    const RankList& list = run.lists.lists[l];
    const TheorySize* size = run.size(l);
    for (size_t t = list.begin; t < list.end; ++t) {
      const size_t i = run.lists.cell[t];
      const WorkToken& token = run.lists.tokens[t];
      const int32_t place = size ? slots[run.size_of[l]].find(list.stage, token, t - list.begin) : kUnknown;
      if (place == kUnknown) {
        if (!theory.has(i)) ++placed.without;
        continue;
      }
      const ReplayedCell& time = (own ? own->times : size->times)[list.stage][place];
      theory.start_ns[i] = time.start_ns;
      theory.end_ns[i] = time.end_ns;
      if (size->schedule.ranks[list.stage][place].overlapped()) placed.fused.push_back(i);
      else if (!placed.fused.empty() && placed.fused.back() == i)
        placed.fused.pop_back();  // of a cell's two tokens the second one decides
      const int64_t start = trace.common_start_ns(i);
      actual.add(start, trace.common_end_ns(i));
      if (time.start_ns < earliest || (time.start_ns == earliest && sum_or_limit(start, -time.start_ns) < shift)) {
        earliest = time.start_ns;
        shift = sum_or_limit(start, -time.start_ns);
      }
    }
  }
  if (earliest == INT64_MAX) return placed;
  TheoryStep step{
      run.lists.lists[first].step, run.lists.lists[first].dp, INT64_MAX, INT64_MIN, actual.start_ns, actual.end_ns};
  for (size_t l = first; l < last; ++l)
    for (size_t t = run.lists.lists[l].begin; t < run.lists.lists[l].end; ++t) {
      const size_t i = run.lists.cell[t];
      // An F&B cell has two tokens but is moved once.
      if (!theory.has(i) || (t > run.lists.lists[l].begin && run.lists.cell[t - 1] == i)) continue;
      theory.start_ns[i] = sum_or_limit(theory.start_ns[i], shift);
      theory.end_ns[i] = sum_or_limit(theory.end_ns[i], shift);
      step.start_ns = std::min(step.start_ns, theory.start_ns[i]);
      step.end_ns = std::max(step.end_ns, theory.end_ns[i]);
    }
  if (own) step.own_pace = true, placed.own_numbers = own->numbers;
  placed.step = step;
  return placed;
}

}  // namespace

TheoryRun theory_of(const Trace& trace, const PipelineSums& sums) {
  TheoryRun run;
  RankLists lists;
  run.recognition = recognise(trace, &lists);
  Theory& theory = run.theory;
  if (!run.recognition.recognised) {
    theory.why_not = why_not_recognised(run.recognition);
    return run;
  }
  if (trace.chunks_are_pieces) {
    theory.why_not = words("unknown.pieces");
    return run;
  }
  const ScheduleCandidate& best = run.recognition.best();
  run.lists = std::move(lists);
  std::map<int32_t, int64_t> counts;  // number of micro-batches → number of lists
  for (const RankList& list : run.lists.lists) ++counts[list.micro_batches];
  while (counts.size() > kMaxSizes)
    counts.erase(std::ranges::min_element(counts, {}, [](const auto& of) { return of.second; }));
  theory.outliers = sums.outliers;
  const MeanCosts means(trace.cells, run.lists, best.sizes.chunks, theory.outliers);
  std::map<int32_t, int32_t> size_of;
  for (const auto& [micro_batches, count] : counts)
    if (auto size = replay_size(best, micro_batches, run.lists, means, theory.why_not)) {
      size_of[micro_batches] = static_cast<int32_t>(run.sizes.size());
      run.sizes.push_back(std::move(*size));
    }
  if (run.sizes.empty()) {
    run.lists = {};
    return run;
  }
  theory.why_not = {};
  theory.schedule = best.name;
  theory.by_rank = !trace.comparable() && trace.parts.size() > 1;
  parallel_for(2, [&](size_t i) { (i == 0 ? theory.start_ns : theory.end_ns).assign(trace.cells.size(), kNoTheory); });
  theory.fused.assign(trace.cells.size(), false);
  for (const RankList& list : run.lists.lists) run.size_of.push_back(value_at(size_of, list.micro_batches, kUnknown));
  auto slots = mapped<SchedulePlaces>(run.sizes, &TheorySize::schedule);
  std::vector<size_t> firsts;
  for (size_t first = 0; first < run.lists.lists.size();) {
    firsts.push_back(first);
    first = theory.by_rank ? first + 1 : run.lists.group_end(first);
  }
  std::vector<PlacedLists> placed(firsts.size());
  firsts.push_back(run.lists.lists.size());
  parallel_for(placed.size(), [&](size_t g) { placed[g] = place_lists(trace, slots, firsts[g], firsts[g + 1], run); });
  for (PlacedLists& one : placed) {
    theory.without += one.without;
    for (const size_t cell : one.fused) theory.fused[cell] = true;
    if (!one.step) continue;
    if (one.own_numbers) run.own_numbers.emplace(theory.steps.size(), std::move(*one.own_numbers));
    theory.steps.push_back(*one.step);
  }
  return run;
}

}  // namespace stageline
