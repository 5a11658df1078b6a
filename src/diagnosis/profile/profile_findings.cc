#include "diagnosis/profile/profile_findings.h"

#include "diagnosis/profile/expert_exchanges.h"
#include "diagnosis/profile/finding_parts.h"
#include "diagnosis/profile/late_rank.h"
#include "diagnosis/profile/late_rank_findings.h"
#include "diagnosis/profile/late_rank_price.h"
#include "diagnosis/profile/phases.h"
#include "diagnosis/profile/transfer_findings.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kIdleShare = 0.05, kExposedShare = 0.05, kPageableShare = 0.01;
constexpr double kOutsideShare = 0.2, kFullQueueShare = 0.01;
constexpr double kLeads = 0.05;  // as for explain: a cause with a price comes first from this share of a step on
constexpr size_t kMinStepsForOutliers = 4;

std::string times(double ratio) { return fixed(ratio, 2) + "×"; }

// Idle time of devices whose launches are not known, so it has no owner.
void add_idle(const ProfileFacts& facts, std::vector<Finding>& out) {
  Finding x{.id = "device.idle", .weight = share_or_zero(facts.whole.idle_ns, facts.whole.span_ns)};
  if (x.weight < kIdleShare) return;
  x.value_note = words("profile.note.devices");
  x.value = percent(x.weight);
  say(x, "profile.idle");
  if (facts.launches_unknown) x.detail = words("profile.idle.unlinked");
  out.push_back(std::move(x));
}

// Returns true if most exposed communication is waiting: collectives that wait for late ranks, or messages, whose
// exposed time is nearly all a pipeline's bubble. `apart`: the collectives' waiting has a separate finding.
bool mostly_waits(const ProfileSums& sums, bool apart) {
  double waits = 0, exposed = 0;
  for (const DeviceSums& rank : sums.ranks) {
    if (!rank.cluster) continue;
    const double collectives = rank.cluster->exposed_collective_ns;
    const double messages = rank.cluster->exposed_message_ns;
    const double waited = rank.cluster->waits_known ? std::min<double>(collectives, rank.cluster->wait_ns) : 0;
    waits += messages + (apart ? 0 : waited);
    exposed += collectives + messages - (apart ? waited : 0);
  }
  return exposed > 0 && 2 * waits > exposed;
}

// Causes of a part of it are in the list already. The title names the largest cause that does not come before it.
void add_exposed_communication(const ProfileFacts& facts, const ProfileSums& sums, const LedgerOfRun* ledger,
                               std::vector<Finding>& out) {
  Finding x;
  x.id = "comm.exposed";
  x.weight = share_or_zero(facts.whole.exposed_comm_ns - facts.comm_wait_ns, facts.whole.span_ns);
  double unexplained = x.weight, most = 0;
  std::vector<Text> causes;
  Args args;
  for (const Finding& other : out) {
    if (!other.id.starts_with("comm.") || other.id == "comm.contention" || !(other.weight > 0)) continue;
    unexplained -= other.weight;
    const Text what = words("profile.exposed.of." + other.id, Args().set("ranks", rank_ranges(other.places[0].ranks)));
    causes.push_back(words("profile.exposed.cause", Args().set("what", what).set("share", percent(other.weight))));
    const bool leads = other.price.saving_ns > 0 && other.weight >= kLeads;
    if (!leads && other.weight > most) args.set("cause", what), most = other.weight;
  }
  if (unexplained < kExposedShare) return;
  const auto share = [](const RankFacts& r) { return share_or_zero(r.exposed_comm_ns - r.comm_wait_ns, r.span_ns); };
  const auto [min, max] =
      std::minmax_element(facts.ranks.begin(), facts.ranks.end(),
                          [&](const RankFacts& a, const RankFacts& b) { return share(a) < share(b); });
  const bool apart = facts.comm_wait_ns > 0;
  x.value = percent(x.weight);
  x.value_note = words("profile.note.devices");
  args.set("hidden", percent(share_or_zero(facts.comm_overlap_ns, facts.whole.comm_ns)));
  args.set("low", percent(share(*min))).set("least", int64_t{min->rank});
  args.set("high", percent(share(*max))).set("most", int64_t{max->rank});
  args.flag("apart", apart).flag("even", percent(share(*min)) == percent(share(*max)));
  args.set("spread", facts.ranks.size() > 1 ? words("profile.exposed.spread", args) : Text());
  args.set("advice",
           words(mostly_waits(sums, apart) ? apart ? "profile.exposed.advice.messages" : "profile.exposed.advice.ranks"
                 : facts.comm_on_compute_stream ? "profile.exposed.advice.stream"
                                                : "profile.exposed.advice.send"));
  args.set("rate", ledger ? rate_of_exposed(*ledger) : Text());
  if (!causes.empty()) args.set("causes", joined(causes, words("list.comma")));
  say(x, "profile.exposed", args);
  out.push_back(std::move(x));
}

void add_exposed_copies(const ProfileFacts& facts, std::vector<Finding>& out) {
  Finding x{.id = "memory.exposed", .weight = share_or_zero(facts.whole.exposed_memory_ns, facts.whole.span_ns)};
  if (x.weight < kExposedShare) return;
  x.value = percent(x.weight);
  x.value_note = words("profile.note.devices");
  say(x, "profile.copies");
  out.push_back(std::move(x));
}

void add_pageable(const ProfileFacts& facts, std::vector<Finding>& out) {
  const double share = share_or_zero(facts.pageable_ns, facts.whole.span_ns);
  if (share < kPageableShare) return;
  Finding x;
  x.id = "copies.pageable";
  // Hidden copies cost nothing. The share of these among the exposed copies was not recorded, so it is at most all.
  x.weight = std::min(share, share_or_zero(facts.whole.exposed_memory_ns, facts.whole.span_ns));
  x.value = percent(share);
  x.value_note = words("profile.note.devices");
  say(x, "profile.pageable",
      Args()
          .set("name", facts.accounted ? "" : facts.pageable_name)
          .set("time", time_per_step(facts, facts.pageable_ns / facts.ranks.size()))
          .flag("several", facts.ranks.size() > 1));
  out.push_back(std::move(x));
}

void add_slow_steps(const ProfileFacts& facts, std::vector<Finding>& out) {
  if (facts.step_count < kMinStepsForOutliers || facts.slow_steps == 0 || !(facts.median_step_ns > 0)) return;
  Finding x{.id = "step.outlier", .value = times(facts.max_step_ns / facts.median_step_ns)};
  const double all = facts.accounted ? facts.window_ns : facts.median_step_ns * facts.step_count;
  x.weight = std::min(1.0, share_or_zero(facts.max_step_ns - facts.median_step_ns, all));
  x.step = facts.max_step;
  const auto step = static_cast<int32_t>(facts.max_step);
  const std::vector<int32_t> ranks = facts.max_step_late ? std::vector{*facts.max_step_late} : facts.max_step_ranks;
  x.places = {{.kind = PlaceKind::kSteps, .ranks = ranks, .first = step, .last = step}};
  x.rank = ranks[0];
  Args args;
  args.set("step", facts.max_step)
      .set("time", human_duration(facts.max_step_ns))
      .set("rank", int64_t{facts.max_step_ranks[0]});
  if (facts.max_step_late)
    args.set("late", int64_t{*facts.max_step_late}).set("wait", human_duration(facts.max_step_wait_ns));
  // Ranks wait for each other within a step, so the one where it is longest need not be the one that delays it.
  args.set("slow", grouped(facts.max_step_ranks.size()))
      .set("of", grouped(facts.max_step_of))
      .flag("several", facts.max_step_ranks.size() > 1);
  args.set("who", words(facts.max_step_late ? "profile.step.waits" : "profile.step.long", args));
  say(x, "profile.step", args.set("median", human_duration(facts.median_step_ns)).flag("devices", facts.device_steps));
  out.push_back(std::move(x));
}

void add_full_queue(const ProfileFacts& facts, std::vector<Finding>& out) {
  if (facts.full_queue_share < kFullQueueShare) return;
  Finding x;
  x.id = "queue.full";
  x.weight = 0;  // devices are busy meanwhile; only the host waits
  x.value = percent(facts.full_queue_share);
  x.places = {{.kind = PlaceKind::kRanks, .ranks = {facts.full_queue_rank}}};
  say(x, "profile.queue", Args().set("rank", int64_t{facts.full_queue_rank}));
  out.push_back(std::move(x));
}

// The trajectory for which training waits longest while it is the only one that runs.
void add_rollout_tail(const Trace& trace, const Headline& headline, std::vector<Finding>& out) {
  const auto part = std::ranges::find(headline.parts, "phase-tail", &SpanPart::id);
  if (part == headline.parts.end() || part->share < kMinLoss) return;
  const std::vector<RolloutTail> tails = rollout_tails(trace);
  std::vector<double> waited(tails.size());
  std::vector<int64_t> step(tails.size());
  for (const Part& rank : trace.parts)
    for (const PhaseTime& phase : phase_times(trace, tails, rank).phases)
      if (phase.tail >= 0) waited[phase.tail] += phase.ns, step[phase.tail] = rank.steps[phase.step].number;
  const size_t worst = std::ranges::max_element(waited) - waited.begin();
  const RolloutTail& tail = tails[worst];
  Finding x{.id = "rollout.tail", .weight = part->share, .value = percent(part->share), .step = step[worst]};
  x.places = {{.kind = PlaceKind::kRanks, .ranks = {tail.rank}}};
  const std::vector<double> others(tail.others_ns.begin(), tail.others_ns.end());
  say(x, "profile.phase-tail",
      Args()
          .set("step", step[worst])
          .set("name", tail.name)
          .set("rank", int64_t{tail.rank})
          .set("alone", human_duration(tail.end_ns - tail.start_ns))
          .set("length", human_duration(tail.dur_ns))
          .count("others", std::ssize(others))
          .set("median", human_duration(quantile(others, 0.5))));
  out.push_back(std::move(x));
}

// Phases in which a step or a request waits for another program.
void add_waiting_phases(const Headline& headline, std::vector<Finding>& out) {
  for (const SpanPart& part : headline.parts) {
    if ((part.id != "phase-wait" && part.id != "phase-queue") || part.share < kIdleShare) continue;
    Finding x{.id = "phase.wait", .weight = part.share, .value = percent(part.share)};
    say(x, "profile." + part.id);
    out.push_back(std::move(x));
  }
}

void add_outside(const ProfileFacts& facts, std::vector<Finding>& out) {
  const double share = share_or_zero(facts.outside_ns, facts.recorded_ns);
  if (share < kOutsideShare) return;
  Finding x;
  x.id = "device.unused";
  x.weight = 0;  // where a recording begins is the user's choice
  x.value = percent(share);
  say(x, "profile.outside",
      Args()
          .set("time", human_duration(facts.outside_ns))
          .flag("several", facts.ranks.size() > 1)
          .flag("steps", facts.accounted && facts.step_count > 0));
  out.push_back(std::move(x));
}

// Returns true when some ranks were recorded long after others had ended. They ran other steps, perhaps of other runs,
// and cannot have waited for each other.
bool recorded_apart(const Trace& trace) {
  if (trace.parts.size() < 2 || trace.diagnostics.count("kineto.far_apart") == 0) return false;
  int64_t last_start = INT64_MIN, first_end = INT64_MAX;
  for (const Part& part : trace.parts) {
    int64_t start = INT64_MAX, end = INT64_MIN;
    for (size_t i = 0; i < part.slices.size(); ++i) {
      start = std::min(start, part.slices.start_ns[i]);
      end = std::max(end, part.slices.end_ns(i));
    }
    if (start > end) continue;
    last_start = std::max(last_start, start), first_end = std::min(first_end, end);
  }
  return last_start > first_end;
}

// ---- the passes ---------------------------------------------------------------------------------------------------

// The bar of collectives alone is the ledger's: what each rank waits in them, and what they take once all have come.
void take_ledger(const LedgerOfRun& run, ProfileFacts& facts) {
  std::map<int32_t, double> waits;
  for (const LedgerInstance& instance : run.ledger.instances)
    for (size_t k = instance.begin; k < instance.end; ++k) {
      const LedgerPart& part = run.ledger.parts[k];
      waits[run.torch.ranks[run.torch.parts[part.call->rank_index]]] += static_cast<double>(part.wait_ns);
    }
  facts.comm_wait_ns = 0;
  for (RankFacts& r : facts.ranks) facts.comm_wait_ns += r.comm_wait_ns = std::min(r.exposed_comm_ns, waits[r.rank]);
}

// Ranks of a pipeline wait for its messages, which its own findings explain.
const LedgerOfRun* ledger_for(const Run& run) {
  const ProfileSums& sums = profile_sums_of(run);
  return sums.communicates && sums.ranks.size() > 1 && run.trace().cells.size() == 0 ? &ledger_of(run) : nullptr;
}

ProfileFacts measure(const Trace& trace, const ProfileSums& sums, const ProfileAccount& account,
                     const LedgerOfRun* ledger, JobOnce& job) {
  ProfileFacts facts = profile_facts(trace, sums, account);
  if (!recorded_apart(trace)) {
    find_late_rank(ledger, facts);
    price_slow_rank(trace, job, facts);
    price_late_rank(job, facts);
    find_waits(trace, sums, facts);
    price_waits(job, facts);
    if (facts.only_communication && ledger != nullptr) take_ledger(*ledger, facts);
  }
  // Ranks of a pipeline are compared within their stages, and nothing here says who they wait for.
  if (trace.cells.size() > 0) {
    facts.comm_wait_ns = 0;
    for (RankFacts& rank : facts.ranks) rank.comm_wait_ns = 0;
  }
  return facts;
}

// Every loss with its price, joined over ranks.
std::vector<Finding> price(const Trace& trace, const ProfileFacts& facts, const ProfileSums& sums,
                           const ProfileAccount& account, const LedgerOfRun* ledger, JobOnce& job) {
  std::vector<Finding> list;
  add_late_and_slow_ranks(facts, list);
  if (facts.accounted) add_loss_findings(facts, account, job, list);
  else add_idle(facts, list);
  if (ledger) add_transfer_findings(*ledger, facts, job, list);
  if (!facts.only_communication) add_exposed_communication(facts, sums, ledger, list);
  add_exposed_copies(facts, list);
  add_pageable(facts, list);
  add_slow_steps(facts, list);
  add_waiting(facts, list);
  if (facts.accounted) add_uneven_experts(trace, facts, job, list);
  add_step_findings(trace, facts, sums, list);
  add_compilation(trace, facts, list);
  add_link_findings(trace, facts, sums, list);
  if (facts.accounted) name_largest(facts, account, list);
  if (ledger) explain_by_experts(*ledger, list);
  return list;
}

void sort_losses(const ProfileFacts& facts, std::vector<Finding>& list) {
  sort_stably(list, std::greater(), &Finding::weight);
  // A rank that is late or slow comes before the waiting that follows from it. Prices decide the order where there are.
  if (!facts.accounted)
    std::ranges::stable_partition(
        list, [](const Finding& finding) { return finding.id == "rank.late" || finding.id == "rank.slow"; });
}

Headline account_for(const Trace& trace, const ProfileFacts& facts, const ProfileSums& sums,
                     const ProfileAccount& account) {
  Headline headline = profile_headline(facts, trace, account);
  if (facts.ranks.empty()) add_host_parts(trace, sums, headline);
  if (facts.ranks.empty() && !headline.parts.empty())
    headline.closing =
        words("profile.closing.host", Args().flag("apart", sums.communicates && trace.clock != ClockState::kShared));
  if (std::ranges::any_of(trace.parts, [](const Part& part) { return !part.router_loads.empty(); }))
    headline.closing = words("profile.closing.untimed"), headline.host_alone = true;
  warn_of_runs(trace, headline);
  headline.step_ns = facts.accounted ? facts.step_ns : 0;
  headline.steps = facts.accounted ? static_cast<int64_t>(facts.step_count) : 0;
  return headline;
}

// The share of a loss, with the digits of the bar where it is a part of it.
std::string share_text(const Headline& headline, const Finding& finding) {
  const std::string_view part = finding.id == "comm.exposed"     ? "comm"
                                : finding.id == "memory.exposed" ? "memory"
                                : finding.id == "input.loading"  ? "idle-input"
                                                                 : "";
  const auto at = std::ranges::find(headline.parts, part, &SpanPart::id);
  if (at == headline.parts.end() || percent(at->share) != percent(finding.weight)) return percent(finding.weight);
  return printed_shares(headline)[at - headline.parts.begin()];
}

// Says what every loss costs as time of a step, and how the bar adds up.
void tell(const ProfileFacts& facts, Findings& out) {
  for (Finding& x : out.list) {
    if (!facts.accounted) {
      if (x.id == "input.loading") x.value = share_text(out.headline, x);
      continue;
    }
    x.lost_ns_per_step = x.weight * facts.step_ns;
    if (!(x.weight > 0)) continue;
    x.value = human_duration(x.lost_ns_per_step) + " (" + share_text(out.headline, x) + ")";
    x.value_note = words(facts.step_count > 0 ? "note.step" : "profile.note.recording");
  }
  const bool has_parts = !out.headline.parts.empty(), devices = !facts.ranks.empty();
  if (devices) close_account(out.list, out.headline);
  if (out.list.empty() && (devices || has_parts))
    out.list.push_back(nothing_found(devices ? "profile.nothing" : "profile.nothing.host"));
}

}  // namespace

MeasuredProfile measured_profile(const Run& run) {
  const ProfileSums& sums = profile_sums_of(run);
  const ProfileAccount& account = run.fact<ProfileAccountFact>();
  JobOnce job(run.trace(), account);
  MeasuredProfile out{measure(run.trace(), sums, account, ledger_for(run), job), {}};
  out.headline = account_for(run.trace(), out.facts, sums, account);
  return out;
}

ProfileLosses profile_losses(const Run& run) {
  const ProfileSums& sums = profile_sums_of(run);
  const ProfileAccount& account = run.fact<ProfileAccountFact>();
  ProfileLosses out;
  const LedgerOfRun* ledger = ledger_for(run);
  JobOnce job(run.trace(), account);
  out.facts = measure(run.trace(), sums, account, ledger, job);
  out.before = price(run.trace(), out.facts, sums, account, ledger, job);
  out.list = profile_findings(run).list;
  return out;
}

Findings profile_findings(const Run& run) {
  return profile_findings(run.trace(), profile_sums_of(run), run.fact<ProfileAccountFact>(), ledger_for(run));
}

Findings profile_findings(const Trace& trace, const ProfileSums& sums, const ProfileAccount& account,
                          const LedgerOfRun* ledger) {
  JobOnce job(trace, account);
  const ProfileFacts facts = measure(trace, sums, account, ledger, job);
  Findings out;
  out.list = price(trace, facts, sums, account, ledger, job);
  if (facts.accounted) absorb(facts, account, out.list);
  sort_losses(facts, out.list);
  add_full_queue(facts, out.list);
  add_outside(facts, out.list);
  out.headline = account_for(trace, facts, sums, account);
  add_rollout_tail(trace, out.headline, out.list);
  add_waiting_phases(out.headline, out.list);
  tell(facts, out);
  return out;
}

}  // namespace stageline
