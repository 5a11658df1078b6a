#include "diagnosis/profile/finding_parts.h"
#include "diagnosis/profile/phases.h"
#include "model/message_names.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kLoadingShare = 0.05, kEligibleShare = 0.5, kLongestOperator = 0.1;

// Times of the mean step by category, summed over ranks, and the rank that loses most to loading.
struct StepShares {
  double total = 0;
  ByEnum<TbRole, double, kTbRoleCount> ns = {};
  double worst_loading = 0;
  int64_t worst_rank = 0;
  double of(TbRole role) const { return share_or_zero(ns[role], total); }
};

StepShares step_shares(const ProfileSums& sums) {
  StepShares s;
  for (const DeviceSums& rank : sums.ranks) {
    if (!rank.step_costs) continue;
    s.total += rank.step_costs->step_ns;
    for (size_t role = 0; role < kTbRoleCount; ++role) s.ns[role] += rank.step_costs->costs[role];
    const double loading = share_or_zero(rank.step_costs->costs[TbRole::kDataLoader], rank.step_costs->step_ns);
    if (loading <= s.worst_loading) continue;
    s.worst_loading = loading;
    s.worst_rank = rank.rank;
  }
  return s;
}

void add_input_loading(const ProfileFacts& facts, const ProfileSums& sums, std::vector<Finding>& out) {
  const StepShares steps = step_shares(sums);
  const double loading = steps.of(TbRole::kDataLoader);
  if (loading <= kLoadingShare) return;
  Finding x{.id = "input.loading", .weight = loading, .value = percent(loading)};
  Args args;
  args.set("worst", steps.worst_loading > 1.1 * loading ? percent(steps.worst_loading) : "");
  args.flag("devices", !facts.ranks.empty()).flag("steps", facts.step_count > 0);
  say(x, "profile.input", args.set("rank", steps.worst_rank));
  x.detail += words(loader_advice(facts));
  out.push_back(std::move(x));
}

void add_tensor_cores(double eligible, std::vector<Finding>& out) {
  if (eligible < kEligibleShare) return;
  Finding x;
  x.id = "tensor_cores.unused";
  x.weight = 0;  // no recording says how much faster they would be
  x.value = percent(eligible);
  say(x, "profile.tensor_cores");
  out.push_back(std::move(x));
}

// Returns the largest class of the memory's peak. The sorting into classes guesses, so only one that is at least half
// is named.
Text largest_class(const Trace& trace, int32_t rank) {
  const std::optional<LargestClass> largest = largest_class_at_peak(trace, rank);
  if (!largest) return {};
  const Text what = words(std::string("profile.memory.") + kMemoryClassNames[largest->of] + "_bytes");
  return words("profile.memory.most", Args().set("what", what).set("share", percent(largest->share)));
}

void add_full_memory(const Trace& trace, double share, int32_t rank, std::vector<Finding>& out) {
  Finding x;
  x.id = "memory.full";
  x.weight = 0;  // about room, not time
  x.value = percent(share);
  x.places = {{.kind = PlaceKind::kRanks, .ranks = {rank}}};
  say(x, "profile.memory", Args().set("rank", int64_t{rank}).set("most", largest_class(trace, rank)));
  out.push_back(std::move(x));
}

void add_data_parallel(int32_t rank, std::vector<Finding>& out) {
  Finding x;
  x.id = "data_parallel.one_process";
  x.weight = 0;  // other findings say whose idle time it is
  x.places = {{.kind = PlaceKind::kRanks, .ranks = {rank}}};
  say(x, "profile.data_parallel", Args().set("rank", int64_t{rank}));
  out.push_back(std::move(x));
}

// The share of operators in the mean steps, and that of communication during which none runs.
std::pair<double, double> operators_and_rest(const ProfileSums& sums) {
  double all = 0, operators = 0, communication = 0;
  for (const DeviceSums& rank : sums.ranks) {
    if (!rank.work) continue;
    const TbOverlap& overlap = rank.work->overlap;
    all += static_cast<double>(rank.work->step_ns);
    operators += static_cast<double>(overlap.computation_ns + overlap.overlap_ns);
    communication += static_cast<double>(overlap.communication_ns);
  }
  return {share_or_zero(operators, all), share_or_zero(communication, all)};
}

// The bar of phases, the longest first, where a host's trace names some.
bool add_phases(const Trace& trace, Headline& headline) {
  std::map<std::string, double> sums;
  double whole = 0, rest = 0;
  const std::vector<RolloutTail> tails = rollout_tails(trace);
  for (const Part& part : trace.parts) {
    const PhaseTimes times = phase_times(trace, tails, part);
    for (const PhaseTime& phase : times.phases) sums[phase.part] += phase.ns, rest -= phase.ns;
    for (const double length : times.lengths) whole += length, rest += length;
  }
  if (sums.empty() || !(whole > 0)) return false;
  headline.host_alone = true;
  if (const auto count = sum_over<int64_t>(trace.parts, [](const Part& part) { return part.requests.size(); }))
    headline.title =
        words("profile.title.requests", Args().count("requests", count).set("time", human_duration(whole / count)));
  for (const auto& [id, ns] : sums) headline.parts.push_back(span_part(id, "profile.part." + id, ns / whole));
  sort_stably(headline.parts, std::greater(), &SpanPart::share);
  if (rest > 0) headline.parts.push_back(span_part("rest", "profile.host.other", rest / whole));
  return true;
}

}  // namespace

void add_step_findings(const Trace& trace, const ProfileFacts& facts, const ProfileSums& sums,
                       std::vector<Finding>& out) {
  if (!facts.accounted) add_input_loading(facts, sums, out);  // with an account, the owner is known gap by gap
  struct Worst {
    double share = 0;
    int32_t rank = -1;
  };
  Worst eligible, parallel, full;  // the worst rank stands for all
  const auto take = [](Worst& worst, int32_t rank, double share) {
    if (worst.rank < 0 || share > worst.share) worst = {share, rank};
  };
  for (const DeviceSums& rank : sums.ranks)
    for (const TbAdvice& advice : rank.advice) {
      if (advice.id == "tensor-cores") take(eligible, rank.rank, advice.share);
      if (advice.id == "memory-full") take(full, rank.rank, advice.share);
      if (advice.id == "data-parallel") take(parallel, rank.rank, 0);
    }
  if (eligible.rank >= 0) add_tensor_cores(eligible.share, out);
  if (parallel.rank >= 0) add_data_parallel(parallel.rank, out);
  if (full.rank >= 0) add_full_memory(trace, full.share, full.rank, out);
}

void add_host_parts(const Trace& trace, const ProfileSums& sums, Headline& headline) {
  const StepShares steps = step_shares(sums);
  if (add_phases(trace, headline)) return;
  if (!(steps.total > 0)) return;
  headline.host_alone = true;
  const auto part = [&](const char* id, const char* name, double share) {
    if (share > 0) headline.parts.push_back(span_part(id, name, share));
  };
  double communication = steps.of(TbRole::kCommunication), operators = steps.of(TbRole::kCpuExec);
  const double loading = steps.of(TbRole::kDataLoader);
  // A row of gloo lasts as long as its call is in flight. The thread's time is its operators', whatever is in flight.
  if (sums.communicates) std::tie(operators, communication) = operators_and_rest(sums);
  part("compute", "profile.host.operators", operators);
  part("comm", "profile.host.communication", communication);
  part("idle-input", "profile.part.idle-input", loading);
  part("rest", "profile.host.other", std::max(0.0, 1 - communication - operators - loading));
  const std::vector<SelfTime> all = self_times(trace, true);
  const auto longest = std::ranges::max_element(all, {}, &SelfTime::self_ns);
  if (longest == all.end() || longest->share < kLongestOperator) return;
  Args args;
  args.set("name", longest->name).set("rank", int64_t{longest->rank}).set("share", percent(longest->share));
  args.set("lead", headline.lead).flag("talks", is_communication_call(longest->name));
  headline.lead = words("profile.host.longest", args);
}

}  // namespace stageline
