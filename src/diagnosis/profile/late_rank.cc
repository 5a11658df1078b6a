#include "diagnosis/profile/late_rank.h"

#include "diagnosis/causes/beyond_noise.h"
#include "diagnosis/profile/other_ranks.h"

// Ranks leave a collective together, so the one that comes last spends the least time in it: it is *late*, and the
// others wait. A rank that computes longer than the others is *slow*; it is late as well if that is why they wait.
//
//   each of the others waits        the rank is slow             what is found
//   5 % of a step or more           and that explains it         it is late by computing: one finding, rank.slow
//   5 % of a step or more           no                           rank.late
//   2 % of a step or more           no                           rank.late, if a replay without the waiting saves 2 %
//   less, or not apart from others  yes                          rank.slow, without waiting
//   for nobody, by half or more     no                           comm.waiting: all wait for one another
//   of the time in collectives
//
// In healthy jobs, too, some rank is always last. So the waiting of a late rank has to come apart from the others' (see
// comes_apart) unless the rank computes longer. Waiting is that of collectives that were matched over ranks (the
// ledger). Without them the time in collectives shows it, and find_waits() takes the mean step of each rank.

namespace stageline {
namespace {

// A rank is slow from a tenth more compute time on; its share of the waiting is judged apart.
constexpr double kSlowRankRatio = 1.1;
// Without matched collectives, the late rank has far less time in them than the others, since all end together.
constexpr double kLateCommRatio = 0.7;
// The part of a step from which on waiting counts without a replay that prices it.
constexpr double kLateShare = 0.05, kWaitingShare = 0.05;
// "Mostly": more than half of what is known is waiting, and at least half is known.
constexpr double kMostlyWaiting = 0.5, kMostlyKnown = 0.5;
// One rank is waited for if it waits less than half as long as the median of the others.
constexpr double kLateRatio = 0.5;

// The rank that came last to most collectives that were matched over ranks; without such a match, the rank that spends
// least time in them. Sets what each of the others waits for it.
const RankFacts* latest(const ProfileFacts& facts, double& waiting_ns) {
  if (facts.stragglers_known) {
    const auto straggler = std::ranges::find(facts.ranks, facts.straggler, &RankFacts::rank);
    waiting_ns = facts.caused_wait_ns / (facts.ranks.size() - 1);
    return straggler == facts.ranks.end() || facts.came_last * 2 < facts.collectives ? nullptr : &*straggler;
  }
  const auto least = std::ranges::min_element(facts.ranks, {}, &RankFacts::comm_ns);
  const double others_ns = median_of_other_ranks(facts, *least, &RankFacts::comm_ns);
  waiting_ns = others_ns - least->comm_ns;
  return least->comm_ns <= 0 || least->comm_ns > kLateCommRatio * others_ns ? nullptr : &*least;
}

// Waiting in collectives that compute cannot have hidden: exposed communication is longer than all transfers.
double certain_wait(const RankFacts& rank) {
  const double transfers = std::max(rank.transfer_ns, rank.comm_ns - rank.wait_ns);
  return rank.wait_ns > 0 ? std::clamp(rank.exposed_comm_ns - transfers, 0.0, rank.wait_ns) : 0;
}

// The waiting for a late rank that costs something: what is hidden under computation does not.
double exposed_wait(const RankFacts& late, double exposed_ns, double waiting_ns) {
  return std::clamp(exposed_ns - late.exposed_comm_ns, 0.0, waiting_ns);
}

// What each rank waited in the collectives in which all wait for the last.
std::map<int32_t, double> waits_in_collectives(const LedgerOfRun& run, int64_t LedgerPart::* waits_ns) {
  std::map<int32_t, double> waits;
  for (const LedgerInstance& instance : run.ledger.instances)
    for (size_t k = instance.begin; instance.complete && synchronises(instance.kind) && k < instance.end; ++k) {
      const LedgerPart& part = run.ledger.parts[k];
      waits[run.torch.ranks[run.torch.parts[part.call->rank_index]]] += static_cast<double>(part.*waits_ns);
    }
  return waits;
}

// The share is of the waiting ranks' spans; the late rank's own may be shorter.
double span_of_others(const ProfileFacts& facts, const RankFacts& late) {
  return median_of_other_ranks(facts, late, &RankFacts::span_ns);
}

// Judges the rank for which each of the others waits `waiting_ns`: see the table above.
std::optional<LateRank> judge_late_rank(const LedgerOfRun* ledger, const ProfileFacts& facts, const RankFacts& late,
                                        double waiting_ns) {
  const double span_ns = span_of_others(facts, late), least_ns = kLateCost * span_ns;
  if (waiting_ns < least_ns) return std::nullopt;
  const auto is_apart = [&](int64_t LedgerPart::* waits_ns) {
    return !ledger || comes_apart(waits_in_collectives(*ledger, waits_ns), late.rank, least_ns);
  };
  const double others_exposed_ns = median_of_other_ranks(facts, late, &RankFacts::exposed_comm_ns);
  const double exposed_ns = exposed_wait(late, others_exposed_ns, waiting_ns);
  const bool by_computing = facts.slow_rank == late.rank && why_late(facts, late, waiting_ns) == Why::kComputing;
  // Waiting delays later transfers too, which are exposed instead: then a replay has to say what it costs.
  const bool much = waiting_ns >= kLateShare * span_ns && (by_computing || is_apart(&LedgerPart::exposed_wait_ns));
  if (by_computing && !much) return std::nullopt;
  if (!by_computing && (exposed_ns < least_ns || (!much && !is_apart(&LedgerPart::wait_ns)))) return std::nullopt;
  return LateRank{late.rank, by_computing, much, waiting_ns, share_or_zero(exposed_ns, span_ns)};
}

// The collectives of a rank in its mean step.
struct RankWait {
  int32_t rank = 0;
  double waiting = 0, exposed = 0, step = 0, computing = 0;  // `exposed`: of `waiting`, the time that costs something
};

struct Waits {
  double transfer = 0, waiting = 0, unknown = 0;
  std::vector<RankWait> by_rank;
  double known() const { return transfer + waiting; }
  double sum(double RankWait::* member) const {
    return sum_over<double>(by_rank, [&](const RankWait& rank) { return rank.*member; });
  }
};

Waits read_waits(const ProfileSums& sums) {
  Waits waits;
  if (!sums.communicates) return waits;
  for (const DeviceSums& rank : sums.ranks) {
    if (!rank.work) continue;
    const TbWait& wait = rank.work->wait;
    // Sends and receives belong to a pipeline and are not collectives; their waits are its bubble.
    const double waited = wait.synchronizing_ns - wait.message_wait_ns;
    const double transferred = wait.transfer_ns - wait.message_transfer_ns;
    if (!(transferred + waited + wait.unknown_ns > 0)) continue;  // no rank waits for one without collectives
    waits.transfer += transferred;
    waits.waiting += waited;
    waits.unknown += wait.unknown_ns;
    const TbOverlap& overlap = rank.work->overlap;
    waits.by_rank.push_back({rank.rank, waited, static_cast<double>(wait.exposed_wait_ns),
                             static_cast<double>(rank.work->step_ns),
                             static_cast<double>(overlap.computation_ns + overlap.overlap_ns)});
  }
  return waits;
}

// Returns true when the others wait longer for a rank than it waits itself, beyond the scatter over the steps.
bool late_in_all_steps(const ProfileSums& sums, const DeviceSums& rank) {
  std::vector<double> net;
  for (const TbStepWait& step : rank.step_waits)
    net.push_back(step.others_ns / (sums.ranks.size() - 1.0) - static_cast<double>(step.own_ns));
  const auto count = static_cast<int64_t>(net.size());
  return count > 1 && mean_of(net) > 0 && beyond_noise(mean_of(net), sample_std(net) / std::sqrt(count), count);
}

// The rank that waits far less than the others is late, and costs what each of the others waits: that cost excludes the
// waiting of the late rank.
void take_least_waiting(const Waits& waits, CollectiveWaits& found) {
  const RankWait& least = *std::ranges::min_element(waits.by_rank, {}, &RankWait::waiting);
  const auto of_others = [&](double RankWait::* member) {
    std::vector<double> values;
    for (const RankWait& rank : waits.by_rank)
      if (rank.rank != least.rank) values.push_back(rank.*member);
    return values;
  };
  const double usual_ns = median_of(of_others(&RankWait::waiting)), cost_ns = mean_of(of_others(&RankWait::exposed));
  if (least.waiting >= kLateRatio * usual_ns) return;
  found.min_rank = least.rank, found.min_ns = least.waiting, found.others_ns = usual_ns;
  found.mean_ns = cost_ns;
  found.late_weight = share_or_zero(cost_ns, mean_of(of_others(&RankWait::step)));
  const double computing_ns = median_of(of_others(&RankWait::computing));
  if (least.computing - computing_ns >= kExplains * cost_ns)
    found.computing_ns = least.computing, found.others_computing_ns = computing_ns;
}

// These waits are of a mean step, so a rank's share of its waiting is taken of its whole span.
void share_waits(const Waits& waits, double weight, ProfileFacts& facts) {
  for (RankFacts& rank : facts.ranks) {
    const auto own = std::ranges::find(waits.by_rank, rank.rank, &RankWait::rank);
    if (own == waits.by_rank.end() || !(waits.waiting > 0)) continue;
    rank.comm_wait_ns = std::min(rank.exposed_comm_ns, weight * facts.whole.span_ns * own->waiting / waits.waiting);
    facts.comm_wait_ns += rank.comm_wait_ns;
  }
}

}  // namespace

Why why_late(const ProfileFacts& facts, const RankFacts& late, double waiting_ns) {
  const std::pair<double, Why> reasons[] = {{more_than_others(facts, late, &RankFacts::host_wait_ns), Why::kHost},
                                            {more_than_others(facts, late, &RankFacts::stream_wait_ns), Why::kStream},
                                            {longer_computing(facts, late), Why::kComputing}};
  const auto& [explained_ns, why] = *std::max_element(std::begin(reasons), std::end(reasons));
  return explained_ns < kExplains * waiting_ns ? Why::kUnknown : why;
}

bool comes_apart(const std::map<int32_t, double>& waits_ns, int32_t rank, double min_ns) {
  auto sorted = mapped<double>(waits_ns, [&](const auto& entry) { return entry.second; });
  std::ranges::sort(sorted);
  const size_t n = sorted.size();
  if (n < 3 || !waits_ns.contains(rank)) return true;
  for (size_t k = 1; 2 * k < n; ++k) {
    const double gap = sorted[k] - sorted[k - 1];
    const double differ = std::max({min_ns, sorted[n - 1] - sorted[k], sorted[k - 1] - sorted[0]});
    if (waits_ns.at(rank) < sorted[k] && gap >= differ) return true;
  }
  return false;
}

void find_late_rank(const LedgerOfRun* ledger, ProfileFacts& facts) {
  if (facts.ranks.size() < 2) return;
  const auto slow = std::ranges::max_element(facts.ranks, {}, &RankFacts::compute_ns);
  const double compute_ns = others_computing(facts, *slow);
  if (compute_ns > 0 && slow->compute_ns >= kSlowRankRatio * compute_ns) facts.slow_rank = slow->rank;
  double waiting_ns = 0;
  const RankFacts* late = latest(facts, waiting_ns);
  if (!late) return;
  facts.late = judge_late_rank(ledger, facts, *late, waiting_ns);
  if (!facts.late) return;
  // A rank that is late for another reason is not called slow for a little more computing too.
  if (facts.slow_rank == late->rank && !facts.late->by_computing && facts.late->much &&
      longer_computing(facts, *late) < kLateShare * span_of_others(facts, *late))
    facts.slow_rank.reset();
  for (RankFacts& rank : facts.ranks) {
    const double exposed_ns = exposed_wait(*late, rank.exposed_comm_ns, waiting_ns);
    rank.comm_wait_ns = std::max(certain_wait(rank), rank.rank == late->rank ? 0 : exposed_ns);
    facts.comm_wait_ns += rank.comm_wait_ns;
  }
}

void find_waits(const Trace& trace, const ProfileSums& sums, ProfileFacts& facts) {
  // Devices leave a collective together, hosts one by one: only starts on one clock say how long they waited.
  if (facts.ranks.empty() && trace.clock != ClockState::kShared) return;
  const Waits waits = read_waits(sums);
  if (waits.by_rank.size() < 2 || waits.known() < kMostlyKnown * (waits.known() + waits.unknown)) return;
  CollectiveWaits found;
  const double exposed_ns = waits.sum(&RankWait::exposed);
  found.share = share_or_zero(waits.waiting, waits.known());
  found.weight = share_or_zero(exposed_ns, waits.sum(&RankWait::step));
  found.mean_ns = exposed_ns / waits.by_rank.size();
  take_least_waiting(waits, found);
  const bool all_wait = found.share >= kMostlyWaiting && found.weight >= kWaitingShare;
  const bool wait_for_one = found.min_rank && found.late_weight >= kWaitingShare &&
                            late_in_all_steps(sums, *std::ranges::find(sums.ranks, *found.min_rank, &DeviceSums::rank));
  if (!all_wait && !wait_for_one) return;
  facts.waits = found;
  if (!facts.late) share_waits(waits, found.weight, facts);
}

}  // namespace stageline
