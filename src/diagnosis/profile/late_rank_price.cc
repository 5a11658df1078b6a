#include "diagnosis/profile/late_rank_price.h"

#include "diagnosis/profile/late_rank.h"
#include "diagnosis/profile/other_ranks.h"
#include "profile/device_time.h"
#include "profile/device_timeline.h"

namespace stageline {
namespace {

constexpr double kLowClock = 0.95;  // most of the others' clock that counts as lower

// Returns by rank how much shorter its window is if the kernels of the slow rank take no longer than the same kernels
// on the others. Ranks then no longer wait for the slow rank, which in turn waits where its work is no longer the last.
// Empty where the replay cannot determine it.
std::map<int32_t, double> saved_without_slowness(const JobReplay& job, const Part& slow, const SharedKernels& shared) {
  if (!job.usable()) return {};
  std::vector<TakenOut> out(job.timelines().size());
  for (size_t r = 0; r < out.size(); ++r)
    if (job.timelines()[r].part == &slow)
      for (const DeviceTimeline::DeviceItem& item : job.timelines()[r].device)
        out[r].device_ns.push_back(shared.shorter_ns[item.slice]);
  return job.saved(out, job.meetings());
}

// Without its slowness the others compute as long as before, so what their windows lose was exposed waiting for it.
void price_slowness(const JobReplay& job, const Part& part, const SharedKernels& shared, ProfileFacts& facts) {
  const std::map<int32_t, double> saved = saved_without_slowness(job, part, shared);
  if (saved.empty()) return;
  double sum = 0;
  for (RankFacts& rank : facts.ranks) {
    const auto own = saved.find(rank.rank);
    if (own == saved.end()) continue;
    sum += own->second;
    if (rank.rank == part.rank) continue;
    const double waited = std::clamp(own->second, rank.comm_wait_ns, std::max(rank.comm_wait_ns, rank.exposed_comm_ns));
    facts.comm_wait_ns += waited - rank.comm_wait_ns;
    rank.comm_wait_ns = waited;
  }
  facts.slow.saved = std::max(0.0, share_or_zero(sum, facts.whole.span_ns));
}

// A rank for which the others wait little, and that no replay finds late, is not late.
void forget_lateness(ProfileFacts& facts) {
  facts.late.reset();
  facts.comm_wait_ns = 0;
  for (RankFacts& rank : facts.ranks) rank.comm_wait_ns = 0;
}

}  // namespace

void price_slow_rank(const Trace& trace, JobOnce& job, ProfileFacts& facts) {
  if (!facts.slow_rank) return;
  const auto part = std::ranges::find(trace.parts, *facts.slow_rank, &Part::rank);
  if (part == trace.parts.end()) return;
  const SharedKernels shared = shared_kernels(trace, *part);
  const RankFacts& rank = fact_of_rank(facts, *facts.slow_rank);
  facts.slow.compared = shared.others_ns > 0;
  if (!facts.slow.compared) return;
  facts.slow.longer = shared.own_ns / shared.others_ns - 1;
  facts.slow.by_kernels =
      (shared.own_ns - shared.others_ns) * rank.compute_ns >= kExplains * longer_computing(facts, rank) * shared.own_ns;
  if (!facts.slow.by_kernels) return;
  std::vector<double> others;
  for (const Part& other : trace.parts)
    if (const double mhz = computing_mhz(clock_times(other)); other.rank != part->rank && !std::isnan(mhz))
      others.push_back(mhz);
  const double mhz = computing_mhz(clock_times(*part)), usual = others.empty() ? 0 : median_of(std::move(others));
  if (mhz < kLowClock * usual) facts.slow.mhz = mhz, facts.slow.others_mhz = usual;
  price_slowness(job(), *part, shared, facts);
}

void price_late_rank(JobOnce& job, ProfileFacts& facts) {
  if (!facts.late || facts.late->by_computing) return;
  const double saved = job().usable() ? job().saved_by_punctual(facts.late->rank) : 0;
  facts.lateness_priced = saved >= kLateCost;
  if (!facts.lateness_priced && !facts.late->much) forget_lateness(facts);
  if (!facts.lateness_priced) return;
  facts.late->share = saved;
  if (facts.slow_rank != facts.late->rank || facts.slow.saved < kExplains * saved) return;
  facts.late->by_computing = true;
  facts.late->share = std::min(saved, facts.slow.saved);
}

void price_waits(JobOnce& job, ProfileFacts& facts) {
  if (facts.late || !facts.waits || !facts.waits->min_rank || !job().usable()) return;
  const double saved = job().saved_by_punctual(*facts.waits->min_rank);
  facts.lateness_priced = saved >= kLateCost;
  if (facts.lateness_priced) facts.waits->late_weight = saved;
}

}  // namespace stageline
