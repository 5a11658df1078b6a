#include "diagnosis/profile/late_rank.h"

#include "diagnosis/causes/beyond_noise.h"
#include "model/statistics.h"
#include "pipeline/sums/stage_costs.h"
#include "profile/device_time.h"
#include "profile/device_timeline.h"
#include "profile/meetings.h"

namespace stageline {
namespace {

constexpr double kSlowRankRatio = 1.1;  // compute time of a rank to the median of the others
// The last to arrive at collectives spends the least time in them, because all leave together.
constexpr double kLateCommRatio = 0.7, kLateShare = 0.05, kLateCost = 0.02;
constexpr double kWaitingShare = 0.05, kMostlyWaiting = 0.5, kMostlyKnown = 0.5, kLateRatio = 0.5;
constexpr double kLowClock = 0.95;  // most of the others' clock that counts as lower
constexpr double kExplains = 0.5;   // minimum part of the others' waiting that its reason has to explain

template <class Get>
double median_of_other_ranks(const ProfileFacts& f, const RankFacts& rank, Get&& get) {
  std::vector<double> values;
  for (const RankFacts& r : f.ranks)
    if (const double value = get(r); r.rank != rank.rank && !std::isnan(value)) values.push_back(value);
  return median_of(values);
}

// Compares with ranks that recorded compute.
double others_computing(const ProfileFacts& f, const RankFacts& rank) {
  return median_of_other_ranks(f, rank, [](const RankFacts& r) { return r.compute_ns > 0 ? r.compute_ns : kNaN; });
}

double longer_computing(const ProfileFacts& f, const RankFacts& rank) {
  const double others = others_computing(f, rank);
  return others > 0 ? rank.compute_ns - others : 0;
}

// The rank that came last to most collectives that were matched over ranks; without such a match, the rank that spends
// minimum time in them.
const RankFacts* latest(const ProfileFacts& f, double& waiting_ns) {
  if (f.stragglers_known) {
    const auto it = std::ranges::find_if(f.ranks, [&](const RankFacts& r) { return r.rank == f.straggler; });
    waiting_ns = f.caused_wait_ns / (f.ranks.size() - 1);
    return it == f.ranks.end() || f.came_last * 2 < f.collectives ? nullptr : &*it;
  }
  const auto late = std::ranges::min_element(f.ranks, {}, &RankFacts::comm_ns);
  const double others = median_of_other_ranks(f, *late, [](const RankFacts& r) { return r.comm_ns; });
  waiting_ns = others - late->comm_ns;
  return late->comm_ns <= 0 || late->comm_ns > kLateCommRatio * others ? nullptr : &*late;
}

// Returns how much more of something the late rank has than the median of the others.
double more_than_others(const ProfileFacts& f, const RankFacts& late, double RankFacts::* of) {
  return late.*of - median_of_other_ranks(f, late, [&](const RankFacts& r) { return r.*of; });
}

// The reason why a rank is late, if one explains a good part of what the others wait for it. Its device waits for its
// host, or starts late what was launched long before, or it computes longer.
enum class Why : uint8_t { kUnknown, kHost, kStream, kComputing };
Why why_late(const ProfileFacts& f, const RankFacts& late, double waiting_ns) {
  const std::pair<double, Why> reasons[] = {{more_than_others(f, late, &RankFacts::host_wait_ns), Why::kHost},
                                            {more_than_others(f, late, &RankFacts::stream_wait_ns), Why::kStream},
                                            {longer_computing(f, late), Why::kComputing}};
  const auto& [explained, why] = *std::max_element(std::begin(reasons), std::end(reasons));
  return explained < kExplains * waiting_ns ? Why::kUnknown : why;
}

Text reason_for(const ProfileFacts& f, const RankFacts& late) {
  Args args;
  const auto say = [&](const char* sentence, double own, double more) {
    return words(sentence, args.set("own", time_per_step(f, own)).set("others", time_per_step(f, own - more)));
  };
  const auto wait = [&](const char* sentence, double RankFacts::* of) {
    return say(sentence, late.*of, more_than_others(f, late, of));
  };
  switch (why_late(f, late, f.late->waiting_ns)) {
    case Why::kHost: return wait("profile.late.host", &RankFacts::host_wait_ns);
    case Why::kStream: return wait("profile.late.stream", &RankFacts::stream_wait_ns);
    case Why::kComputing: return say("profile.late.compute", late.compute_ns, longer_computing(f, late));
    case Why::kUnknown: break;
  }
  return {};
}

const RankFacts& fact_of_rank(const ProfileFacts& f, int32_t rank) {
  return *std::ranges::find_if(f.ranks, [&](const RankFacts& r) { return r.rank == rank; });
}

// "It came last to 30 of 30 collectives; each of the others waited 50 ms in them on average."
Text how_late(const ProfileFacts& f, const RankFacts& late, const Text& reason) {
  const double others = median_of_other_ranks(f, late, [](const RankFacts& r) { return r.comm_ns; });
  Args args;
  args.flag("matched", f.stragglers_known).set("reason", reason).set("last", grouped(f.came_last));
  args.set("of", grouped(f.collectives)).set("waited", time_per_step(f, f.late->waiting_ns));
  args.set("own", time_per_step(f, late.comm_ns)).set("others", time_per_step(f, others));
  if (f.comm_wait_ns <= 0) return words("profile.late.detail", args.set("waits", ""));
  const std::string share = percent(share_or_zero(f.comm_wait_ns, f.whole.span_ns));
  return words("profile.late.detail",
               args.set("waits", words(f.only_communication ? "profile.late.communication" : "profile.late.exposed",
                                       Args().set("share", share))));
}

// Waiting in collectives that compute cannot have hidden: exposed communication is longer than all transfers.
double certain_wait(const RankFacts& r) {
  const double transfers = std::max(r.transfer_ns, r.comm_ns - r.wait_ns);
  return r.wait_ns > 0 ? std::clamp(r.exposed_comm_ns - transfers, 0.0, r.wait_ns) : 0;
}

// Some rank is always last. A rank is late that waits less than the others by
// `min_ns` or more, and by more than these differ, alone or with a minority of ranks. True where nothing is known.
bool comes_apart(const LedgerOfRun& run, int32_t rank, double min_ns, int64_t LedgerPart::* waits_ns) {
  std::map<int32_t, double> waits;
  for (const LedgerInstance& instance : run.ledger.instances)
    for (size_t k = instance.begin; instance.complete && synchronises(instance.kind) && k < instance.end; ++k) {
      const LedgerPart& part = run.ledger.parts[k];
      waits[run.torch.ranks[run.torch.parts[part.call->rank_index]]] += static_cast<double>(part.*waits_ns);
    }
  std::vector<double> sorted;
  for (const auto& [other, ns] : waits) sorted.push_back(ns);
  std::ranges::sort(sorted);
  const size_t n = sorted.size();
  if (n < 3 || !waits.contains(rank)) return true;
  for (size_t k = 1; 2 * k < n; ++k) {
    const double gap = sorted[k] - sorted[k - 1];
    const double differ = std::max({min_ns, sorted[n - 1] - sorted[k], sorted[k - 1] - sorted[0]});
    if (waits[rank] < sorted[k] && gap >= differ) return true;
  }
  return false;
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
  double sum(double RankWait::* of) const {
    return sum_over<double>(by_rank, [&](const RankWait& rank) { return rank.*of; });
  }
};

Waits read_waits(const ProfileSums& sums) {
  Waits w;
  if (!sums.communicates) return w;
  for (const DeviceSums& rank : sums.ranks) {
    if (!rank.work) continue;
    const TbWait& wait = rank.work->wait;
    // Sends and receives belong to a pipeline and are not collectives; their waits are its bubble.
    const double waited = wait.synchronizing_ns - wait.message_wait_ns;
    const double transferred = wait.transfer_ns - wait.message_transfer_ns;
    if (!(transferred + waited + wait.unknown_ns > 0)) continue;  // no rank waits for one without collectives
    w.transfer += transferred;
    w.waiting += waited;
    w.unknown += wait.unknown_ns;
    const TbOverlap& overlap = rank.work->overlap;
    w.by_rank.push_back({rank.rank, waited, static_cast<double>(wait.exposed_wait_ns),
                         static_cast<double>(rank.work->step_ns),
                         static_cast<double>(overlap.computation_ns + overlap.overlap_ns)});
  }
  return w;
}

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
void price_slowness(const JobReplay& job, const Part& part, const SharedKernels& shared, ProfileFacts& f) {
  const std::map<int32_t, double> saved = saved_without_slowness(job, part, shared);
  if (saved.empty()) return;
  double sum = 0;
  for (RankFacts& r : f.ranks) {
    const auto own = saved.find(r.rank);
    if (own == saved.end()) continue;
    sum += own->second;
    if (r.rank == part.rank) continue;
    const double waited = std::clamp(own->second, r.comm_wait_ns, std::max(r.comm_wait_ns, r.exposed_comm_ns));
    f.comm_wait_ns += waited - r.comm_wait_ns;
    r.comm_wait_ns = waited;
  }
  f.slow.saved = std::max(0.0, share_or_zero(sum, f.whole.span_ns));
}

// Returns true when the others wait longer for a rank than it waits itself, beyond the scatter over the steps.
bool late_in_all_steps(const ProfileSums& sums, const DeviceSums& rank) {
  std::vector<double> net;
  for (const TbStepWait& step : rank.step_waits)
    net.push_back(step.others_ns / (sums.ranks.size() - 1.0) - static_cast<double>(step.own_ns));
  const auto count = static_cast<int64_t>(net.size());
  return count > 1 && mean_of(net) > 0 && beyond_noise(mean_of(net), sample_std(net) / std::sqrt(count), count);
}

// Says why a rank computes longer, as far as its kernels and its clock show it.
Text why_slow(const ProfileFacts& f) {
  if (!f.slow.compared) return words("profile.slow.unknown");
  if (!f.slow.by_kernels) return words("profile.slow.more");
  Args args;
  args.set("longer", percent(f.slow.longer)).flag("clock", f.slow.mhz > 0);
  return words("profile.slow.same",
               args.set("mhz", fixed(f.slow.mhz, 0)).set("others_mhz", fixed(f.slow.others_mhz, 0)));
}

}  // namespace

void see_late_rank(const LedgerOfRun* ledger, ProfileFacts& f) {
  if (f.ranks.size() < 2) return;
  const auto slow = std::ranges::max_element(f.ranks, {}, &RankFacts::compute_ns);
  const double compute = others_computing(f, *slow);
  if (compute > 0 && slow->compute_ns >= kSlowRankRatio * compute) f.slow_rank = slow->rank;
  double waiting = 0;
  const RankFacts* late = latest(f, waiting);
  if (!late) return;
  // The share is of the waiting ranks' spans; the late rank's own may be shorter.
  const double span = median_of_other_ranks(f, *late, [](const RankFacts& r) { return r.span_ns; });
  if (waiting < kLateCost * span) return;
  // Waiting that is hidden under computation costs nothing.
  const auto exposed_wait = [&](double exposed_ns) {
    return std::clamp(exposed_ns - late->exposed_comm_ns, 0.0, waiting);
  };
  const double exposed = median_of_other_ranks(f, *late, [](const RankFacts& r) { return r.exposed_comm_ns; });
  const bool slows = f.slow_rank == late->rank && why_late(f, *late, waiting) == Why::kComputing;
  const double least = kLateCost * span;
  const auto apart = [&](int64_t LedgerPart::* waits_ns) {
    return !ledger || comes_apart(*ledger, late->rank, least, waits_ns);
  };
  // Waiting delays later transfers too, which are exposed instead: then a replay has to say what it costs.
  const bool much = waiting >= kLateShare * span && (slows || apart(&LedgerPart::exposed_wait_ns));
  if (!much && slows) return;
  if (!slows && (exposed_wait(exposed) < least || (!much && !apart(&LedgerPart::wait_ns)))) return;
  if (f.slow_rank == late->rank && !slows && much && longer_computing(f, *late) < kLateShare * span)
    f.slow_rank.reset();
  f.late = LateRank{late->rank, slows, much, waiting, share_or_zero(exposed_wait(exposed), span)};
  for (RankFacts& r : f.ranks) {
    r.comm_wait_ns = std::max(certain_wait(r), r.rank == late->rank ? 0 : exposed_wait(r.exposed_comm_ns));
    f.comm_wait_ns += r.comm_wait_ns;
  }
}

void see_why_slow(const Trace& trace, JobOnce& job, ProfileFacts& f) {
  if (!f.slow_rank) return;
  const auto part = std::ranges::find(trace.parts, *f.slow_rank, &Part::rank);
  if (part == trace.parts.end()) return;
  const SharedKernels shared = shared_kernels(trace, *part);
  const RankFacts& rank = fact_of_rank(f, *f.slow_rank);
  f.slow.compared = shared.others_ns > 0;
  if (!f.slow.compared) return;
  f.slow.longer = shared.own_ns / shared.others_ns - 1;
  f.slow.by_kernels =
      (shared.own_ns - shared.others_ns) * rank.compute_ns >= kExplains * longer_computing(f, rank) * shared.own_ns;
  if (!f.slow.by_kernels) return;
  std::vector<double> others;
  for (const Part& other : trace.parts)
    if (const double mhz = computing_mhz(clock_times(other)); other.rank != part->rank && !std::isnan(mhz))
      others.push_back(mhz);
  const double mhz = computing_mhz(clock_times(*part)), usual = others.empty() ? 0 : median_of(std::move(others));
  if (mhz < kLowClock * usual) f.slow.mhz = mhz, f.slow.others_mhz = usual;
  price_slowness(job(), *part, shared, f);
}

void see_waits(const Trace& trace, const ProfileSums& sums, ProfileFacts& f) {
  // Devices leave a collective together, hosts one by one: only starts on one clock say how long they waited.
  if (f.ranks.empty() && trace.clock != ClockState::kShared) return;
  Waits w = read_waits(sums);
  const double known = w.known();
  if (w.by_rank.size() < 2 || known < kMostlyKnown * (known + w.unknown)) return;
  const double share = share_or_zero(w.waiting, known);
  const double exposed = w.sum(&RankWait::exposed);
  CollectiveWaits reported;
  reported.share = share;
  reported.weight = share_or_zero(exposed, w.sum(&RankWait::step));
  reported.mean_ns = exposed / w.by_rank.size();
  const auto min = std::ranges::min_element(w.by_rank, {}, &RankWait::waiting);
  std::vector<double> waiting, cost, step, computing;  // of the others
  for (const RankWait& rank : w.by_rank)
    if (rank.rank != min->rank) {
      waiting.push_back(rank.waiting), cost.push_back(rank.exposed);
      step.push_back(rank.step), computing.push_back(rank.computing);
    }
  bool enough = share >= kMostlyWaiting && reported.weight >= kWaitingShare;
  if (const double usual = median_of(std::move(waiting)); min->waiting < kLateRatio * usual) {
    // The one that waits least is late, and costs what each of the others waits: that cost excludes the waiting of the
    // late rank.
    reported.min_rank = min->rank, reported.min_ns = min->waiting;
    reported.mean_ns = mean_of(cost);
    reported.late_weight = share_or_zero(mean_of(cost), mean_of(step));
    reported.others_ns = usual;
    enough |= reported.late_weight >= kWaitingShare &&
              late_in_all_steps(sums, *std::ranges::find(sums.ranks, min->rank, &DeviceSums::rank));
    const double others = median_of(std::move(computing));
    if (min->computing - others >= kExplains * mean_of(cost))
      reported.computing_ns = min->computing, reported.others_computing_ns = others;
  }
  if (!enough) return;
  f.waits = reported;
  if (f.late) return;
  for (RankFacts& r : f.ranks) {
    // These waits are of a mean step, so a rank's share of its waiting is taken of its whole span.
    const auto own = std::ranges::find_if(w.by_rank, [&](const auto& x) { return x.rank == r.rank; });
    if (own == w.by_rank.end() || !(w.waiting > 0)) continue;
    r.comm_wait_ns = std::min(r.exposed_comm_ns, reported.weight * f.whole.span_ns * own->waiting / w.waiting);
    f.comm_wait_ns += r.comm_wait_ns;
  }
}

void price_late_rank(JobOnce& job, ProfileFacts& f) {
  if (!f.late || f.late->by_computing) return;
  const double saved = job().usable() ? job().saved_by_punctual(f.late->rank) : 0;
  f.lateness_priced = saved >= kLateCost;
  if (!f.lateness_priced && !f.late->much) {
    f.late.reset();
    f.comm_wait_ns = 0;
    for (RankFacts& r : f.ranks) r.comm_wait_ns = 0;
  }
  if (!f.lateness_priced) return;
  f.late->share = saved;
  if (f.slow_rank != f.late->rank || f.slow.saved < kExplains * saved) return;
  f.late->by_computing = true;
  f.late->share = std::min(saved, f.slow.saved);
}

void price_waits(JobOnce& job, ProfileFacts& f) {
  if (f.late || !f.waits || !f.waits->min_rank || !job().usable()) return;
  const double saved = job().saved_by_punctual(static_cast<int32_t>(*f.waits->min_rank));
  f.lateness_priced = saved >= kLateCost;
  if (f.lateness_priced) f.waits->late_weight = saved;
}

void add_late_and_slow_ranks(const ProfileFacts& f, std::vector<Finding>& out) {
  if (f.late && !f.late->by_computing) {
    const RankFacts& late = fact_of_rank(f, f.late->rank);
    Finding x;
    x.id = "rank.late";
    x.weight = f.late->share;
    x.value = percent(x.weight);
    if (f.lateness_priced) x.price.saving_ns = x.weight * f.step_ns;
    x.rank = late.rank;
    x.places = {{.kind = PlaceKind::kRanks, .ranks = {late.rank}}};
    x.title = words("profile.late.title", Args().set("rank", int64_t{late.rank}));
    x.value_note = words("profile.late.note", Args().flag("alone", f.only_communication));
    x.detail = how_late(f, late, reason_for(f, late));
    out.push_back(std::move(x));
  }
  if (!f.slow_rank) return;
  const RankFacts& slow = fact_of_rank(f, *f.slow_rank);
  const double others = others_computing(f, slow);
  const bool waited = f.late && f.late->by_computing;
  Finding x;
  x.id = "rank.slow";
  x.rank = slow.rank;
  x.places = {{.kind = PlaceKind::kRanks, .ranks = {slow.rank}}};
  // Where no call shows what paces the host, a replay keeps its pace, although the others are seen to wait.
  const double waiting = waited ? f.late->share : 0;
  const bool replayed = f.slow.saved > 0 && f.slow.saved >= waiting;
  if (replayed) x.price.saving_ns = f.slow.saved * f.step_ns;
  x.weight = replayed                      ? f.slow.saved
             : waited || f.slow.saved == 0 ? waiting
                                           : share_or_zero(slow.compute_ns - others, slow.span_ns);
  x.value = fixed(slow.compute_ns / others, 2) + "×";
  Args args;
  args.set("rank", int64_t{slow.rank}).set("own", time_per_step(f, slow.compute_ns)).flag("waited", waited);
  const auto idle = std::ranges::count_if(f.ranks, [](const RankFacts& r) { return r.compute_ns <= 0; });
  if (idle > 0) args.count("idle", idle);
  say(x, "profile.slow", args.set("others", time_per_step(f, others)).set("why", why_slow(f)));
  if (waited) x.detail += words("profile.slow.late", Args().set("late", how_late(f, slow, {})));
  out.push_back(std::move(x));
}

Finding* finding_of_late_rank(const ProfileFacts& f, std::vector<Finding>& list) {
  if (!f.late && (!f.waits || !f.waits->min_rank)) return nullptr;
  const auto it = std::ranges::find_if(list, [&](const Finding& x) {
    return f.late ? x.id == (f.late->by_computing ? "rank.slow" : "rank.late") && x.rank == f.late->rank
                  : x.id == "rank.late" && x.rank == *f.waits->min_rank;
  });
  return it == list.end() ? nullptr : &*it;
}

void add_waiting(const ProfileFacts& f, std::vector<Finding>& out) {
  if (!f.waits) return;
  Finding* late = finding_of_late_rank(f, out);
  if (!late && f.waits->min_rank && f.slow_rank == *f.waits->min_rank) late = find_finding(out, "rank.slow");
  if (late) {
    late->detail += words("profile.late.waits", Args().set("share", percent(f.waits->share)));
    return;
  }
  const CollectiveWaits& waits = *f.waits;
  Finding x;
  x.id = waits.min_rank ? "rank.late" : "comm.waiting";
  x.weight = waits.min_rank ? waits.late_weight : waits.weight;
  x.value = percent(x.weight);
  x.value_note = words(f.step_count > 0 ? "note.step" : "profile.note.recording");
  if (waits.min_rank && f.lateness_priced) x.price.saving_ns = x.weight * f.step_ns;
  Args args;
  args.set("share", percent(waits.share)).set("time", human_duration(waits.mean_ns));
  args.set("rank", waits.min_rank.value_or(0)).flag("steps", f.step_count > 0);
  args.set("least", human_duration(waits.min_ns)).set("usual", human_duration(waits.others_ns));
  args.set("who", words(waits.min_rank ? "profile.collectives.late" : "profile.collectives.nobody", args));
  say(x, "profile.collectives", args);
  if (waits.min_rank) {
    x.rank = *waits.min_rank;
    x.places = {{.kind = PlaceKind::kRanks, .ranks = {static_cast<int32_t>(*waits.min_rank)}}};
    x.title = words("profile.late.title", args);
  }
  if (waits.computing_ns > 0) {
    args.set("own", human_duration(waits.computing_ns)).set("others", human_duration(waits.others_computing_ns));
    x.detail += words("profile.late.compute", args);
  }
  out.push_back(std::move(x));
}

}  // namespace stageline
