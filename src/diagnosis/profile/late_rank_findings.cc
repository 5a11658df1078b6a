#include "diagnosis/profile/late_rank_findings.h"

#include "diagnosis/profile/late_rank.h"
#include "diagnosis/profile/other_ranks.h"

namespace stageline {
namespace {

Text reason_for(const ProfileFacts& facts, const RankFacts& late) {
  const auto compared = [&](const char* sentence, double own_ns, double more_ns) {
    return words(sentence,
                 Args().set("own", time_per_step(facts, own_ns)).set("others", time_per_step(facts, own_ns - more_ns)));
  };
  const auto waited = [&](const char* sentence, double RankFacts::* member) {
    return compared(sentence, late.*member, more_than_others(facts, late, member));
  };
  switch (why_late(facts, late, facts.late->waiting_ns)) {
    case Why::kHost: return waited("profile.late.host", &RankFacts::host_wait_ns);
    case Why::kStream: return waited("profile.late.stream", &RankFacts::stream_wait_ns);
    case Why::kComputing: return compared("profile.late.compute", late.compute_ns, longer_computing(facts, late));
    case Why::kUnknown: break;
  }
  return {};
}

// "It came last to 30 of 30 collectives; each of the others waited 50 ms in them on average."
Text how_late(const ProfileFacts& facts, const RankFacts& late, const Text& reason) {
  const double others_ns = median_of_other_ranks(facts, late, &RankFacts::comm_ns);
  Args args;
  args.flag("matched", facts.stragglers_known).set("reason", reason).set("last", grouped(facts.came_last));
  args.set("of", grouped(facts.collectives)).set("waited", time_per_step(facts, facts.late->waiting_ns));
  args.set("own", time_per_step(facts, late.comm_ns)).set("others", time_per_step(facts, others_ns));
  if (facts.comm_wait_ns <= 0) return words("profile.late.detail", args.set("waits", ""));
  const Args share = Args().set("share", percent(share_or_zero(facts.comm_wait_ns, facts.whole.span_ns)));
  return words("profile.late.detail",
               args.set("waits", words(facts.only_communication ? "profile.late.communication" : "profile.late.exposed",
                                       share)));
}

// Says why a rank computes longer, as far as its kernels and its clock show it.
Text why_slow(const ProfileFacts& facts) {
  if (!facts.slow.compared) return words("profile.slow.unknown");
  if (!facts.slow.by_kernels) return words("profile.slow.more");
  Args args;
  args.set("longer", percent(facts.slow.longer)).flag("clock", facts.slow.mhz > 0);
  return words("profile.slow.same",
               args.set("mhz", fixed(facts.slow.mhz, 0)).set("others_mhz", fixed(facts.slow.others_mhz, 0)));
}

// rank.late of a rank: what it costs, and its place. Its evidence is the caller's.
Finding late_finding(const ProfileFacts& facts, int32_t rank, double weight) {
  Finding finding{.id = "rank.late", .weight = weight, .value = percent(weight)};
  if (facts.lateness_priced) finding.price.saving_ns = weight * facts.step_ns;
  finding.rank = rank;
  finding.places = {{.kind = PlaceKind::kRanks, .ranks = {rank}}};
  finding.title = words("profile.late.title", Args().set("rank", int64_t{rank}));
  return finding;
}

bool is_late_by_computing(const ProfileFacts& facts) { return facts.late && facts.late->by_computing; }

// A replay without the slowness says what it costs, unless the others are seen to wait for longer: where no call shows
// what paces the host, a replay keeps its pace.
bool is_slowness_replayed(const ProfileFacts& facts) {
  return facts.slow.saved > 0 && facts.slow.saved >= (is_late_by_computing(facts) ? facts.late->share : 0);
}

double weight_of_slow_rank(const ProfileFacts& facts, const RankFacts& slow, double others_ns) {
  if (is_slowness_replayed(facts)) return facts.slow.saved;
  if (is_late_by_computing(facts)) return facts.late->share;
  return facts.slow.saved == 0 ? 0 : share_or_zero(slow.compute_ns - others_ns, slow.span_ns);
}

Finding slow_finding(const ProfileFacts& facts, const RankFacts& slow) {
  const double others_ns = others_computing(facts, slow);
  Finding finding{.id = "rank.slow", .rank = slow.rank};
  finding.places = {{.kind = PlaceKind::kRanks, .ranks = {slow.rank}}};
  if (is_slowness_replayed(facts)) finding.price.saving_ns = facts.slow.saved * facts.step_ns;
  finding.weight = weight_of_slow_rank(facts, slow, others_ns);
  finding.value = fixed(slow.compute_ns / others_ns, 2) + "×";
  const bool waited = is_late_by_computing(facts);
  Args args;
  args.set("rank", int64_t{slow.rank}).set("own", time_per_step(facts, slow.compute_ns)).flag("waited", waited);
  const auto idle = std::ranges::count_if(facts.ranks, [](const RankFacts& rank) { return rank.compute_ns <= 0; });
  if (idle > 0) args.count("idle", idle);
  say(finding, "profile.slow", args.set("others", time_per_step(facts, others_ns)).set("why", why_slow(facts)));
  if (waited) finding.detail += words("profile.slow.late", Args().set("late", how_late(facts, slow, {})));
  return finding;
}

}  // namespace

void add_late_and_slow_ranks(const ProfileFacts& facts, std::vector<Finding>& out) {
  if (facts.late && !facts.late->by_computing) {
    const RankFacts& late = fact_of_rank(facts, facts.late->rank);
    Finding finding = late_finding(facts, late.rank, facts.late->share);
    finding.value_note = words("profile.late.note", Args().flag("alone", facts.only_communication));
    finding.detail = how_late(facts, late, reason_for(facts, late));
    out.push_back(std::move(finding));
  }
  if (facts.slow_rank) out.push_back(slow_finding(facts, fact_of_rank(facts, *facts.slow_rank)));
}

Finding* finding_of_late_rank(const ProfileFacts& facts, std::vector<Finding>& list) {
  if (!facts.late && (!facts.waits || !facts.waits->min_rank)) return nullptr;
  const std::string_view id = is_late_by_computing(facts) ? "rank.slow" : "rank.late";
  const int32_t rank = facts.late ? facts.late->rank : *facts.waits->min_rank;
  const auto it =
      std::ranges::find_if(list, [&](const Finding& finding) { return finding.id == id && finding.rank == rank; });
  return it == list.end() ? nullptr : &*it;
}

void add_waiting(const ProfileFacts& facts, std::vector<Finding>& out) {
  if (!facts.waits) return;
  const CollectiveWaits& waits = *facts.waits;
  Finding* late = finding_of_late_rank(facts, out);
  if (!late && waits.min_rank && facts.slow_rank == waits.min_rank) late = find_finding(out, "rank.slow");
  if (late) {
    late->detail += words("profile.late.waits", Args().set("share", percent(waits.share)));
    return;
  }
  Args args;
  args.set("share", percent(waits.share)).set("time", human_duration(waits.mean_ns));
  args.set("rank", int64_t{waits.min_rank.value_or(0)}).flag("steps", facts.step_count > 0);
  args.set("least", human_duration(waits.min_ns)).set("usual", human_duration(waits.others_ns));
  args.set("who", words(waits.min_rank ? "profile.collectives.late" : "profile.collectives.nobody", args));
  Finding finding;
  if (waits.min_rank) {
    finding = late_finding(facts, *waits.min_rank, waits.late_weight);
    finding.detail = words("profile.collectives.detail", args);
  } else {
    finding.id = "comm.waiting", finding.weight = waits.weight;
    finding.value = percent(finding.weight);
    say(finding, "profile.collectives", args);
  }
  finding.value_note = words(facts.step_count > 0 ? "note.step" : "profile.note.recording");
  if (waits.computing_ns > 0) {
    args.set("own", human_duration(waits.computing_ns)).set("others", human_duration(waits.others_computing_ns));
    finding.detail += words("profile.late.compute", args);
  }
  out.push_back(std::move(finding));
}

}  // namespace stageline
