#include "diagnosis/profile/finding_parts.h"
#include "diagnosis/profile/profile_diff.h"
#include "diagnosis/profile/profile_findings.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kOneRank = 2;     // as for a loss alone: the others wait for a rank that loses this many times theirs
constexpr double kSameSum = 0.02;  // share of the sum; a smaller difference from it is not reported

// The losses that a rank would not have if every finding were gone.
Removed removed_of(const ProfileFacts& facts, const RankFacts& rank, const std::vector<Finding>& list) {
  Removed removed;
  const double waiting = share_or_zero(rank.comm_wait_ns, rank.exposed_comm_ns);
  if (has_finding(list, "comm.exposed")) removed.communication += 1 - waiting;
  if (has_finding(list, "comm.waiting") || has_finding(list, "rank.late") ||
      (facts.late && has_finding(list, "rank.slow")))
    removed.communication += waiting;
  if (has_finding(list, "memory.exposed")) removed.copies = 1;
  if (facts.slow_rank == rank.rank && has_finding(list, "rank.slow")) {
    std::vector<double> others;
    for (const RankFacts& other : facts.ranks)
      if (other.rank != rank.rank && other.compute_ns > 0) others.push_back(other.compute_ns);
    removed.compute = std::max(0.0, 1 - share_or_zero(median_of(others), rank.compute_ns));
  }
  removed.loss = [&list](const RankLoss& loss) {
    return std::ranges::any_of(list, [&](const Finding& finding) {
      if (finding.id == "comm.contention") return loss.kind == LossKind::kContention;
      if (finding.id == "compute.aicpu") return loss.kind == LossKind::kAiCpu;
      if (finding.id == "compute.misaligned") return loss.kind == LossKind::kMisaligned;
      if (finding.id == "compute.few_cores") return loss.kind == LossKind::kFewCores;
      if (finding.id == "copies.pageable")
        return loss.kind == LossKind::kCopy && loss.what.find("Pageable") != std::string::npos;
      return is_about(finding, loss);
    });
  };
  return removed;
}

double saving_of(const Finding& finding) {
  return finding.price.saving_ns > 0 ? finding.price.saving_ns : finding.lost_ns_per_step;
}

// All losses together, as a share of the step: the mean of the ranks or, where ranks wait for one that loses far more,
// that rank's.
double together(const Run& run, const ProfileFacts& facts, const std::vector<Finding>& list) {
  const Trace& trace = run.trace();
  std::vector<double> shares(facts.ranks.size());
  parallel_for(shares.size(), [&](size_t r) {
    for (const Part& part : trace.parts)
      if (part.rank == facts.ranks[r].rank)
        shares[r] =
            share_or_zero(saved_without(trace, part, removed_of(facts, facts.ranks[r], list)), facts.ranks[r].span_ns);
  });
  const double mean = mean_of(shares), max = *std::ranges::max_element(shares);
  std::ranges::sort(shares);
  shares.pop_back();
  return facts.whole.comm_ns > 0 && !shares.empty() && max > kOneRank * median_of(shares) ? max : mean;
}

void set_saving(Fix& fix, double saving_ns, const ProfileFacts& facts) {
  fix.price.saving_ns = saving_ns, fix.price.step_ns = facts.step_ns - saving_ns;
}

Fix priced(const std::string& id, const Text& name, double saving_ns, const ProfileFacts& facts) {
  Fix fix;
  fix.id = id, fix.name = name;
  fix.price.recorded_ns = facts.step_ns;
  fix.price.steps = static_cast<int64_t>(facts.step_count);
  set_saving(fix, saving_ns, facts);
  fix.price.error_ns = fix.price.held = kNaN;
  fix.assumes = words("profile.what_if.replayed");
  return fix;
}

Fix fix_of(const Finding& finding, const ProfileFacts& facts) {
  Fix fix = priced(finding.id, finding.title, saving_of(finding), facts);
  fix.how = finding.detail;
  if (finding.uncertainty_ns > 0) fix.price.error_ns = finding.uncertainty_ns;
  // That a part of the bar would be gone is not simulated: other work may take its place.
  fix.bound = !(finding.price.saving_ns > 0);
  if (fix.bound) fix.assumes = words("profile.what_if.bound");
  return fix;
}

}  // namespace

Result<FixList> profile_fixes(const Run& run) {
  const ProfileLosses losses = profile_losses(run);
  const ProfileFacts& f = losses.facts;
  if (!f.accounted)
    return make_error(ErrorCode::kUnavailable, "no launches are linked to device work, so nothing can be simulated",
                      "stageline explain says what was recorded");
  FixList out;
  out.step_ns = f.step_ns, out.steps = static_cast<int64_t>(f.step_count);
  double sum = 0, max = 0, most = 0;
  Text paced;
  for (const Finding& x : losses.list) {
    if (!(x.weight > 0) || !(saving_of(x) > 0)) continue;
    Fix& fix = out.fixes.emplace_back(fix_of(x, f));
    if (const double alone = fix.bound ? together(run, f, {x}) * f.step_ns : 0; alone > 0) {
      const double over = saving_of(x) - alone;
      fix.bound = false, fix.assumes = words("profile.what_if.replayed");
      set_saving(fix, std::min(alone, saving_of(x)), f);
      if (over > std::max(most, kSameSum * saving_of(x))) {
        most = over;
        paced = words(
            "profile.what_if.paced",
            Args().set("name", x.title).set("lost", human_duration(saving_of(x))).set("saving", human_duration(alone)));
      }
    }
    sum += fix.price.saving_ns;
    max = std::max(max, fix.price.saving_ns);
  }
  out.tried = std::ssize(out.fixes);
  sort_stably(out.fixes, [](const Fix& a, const Fix& b) {
    return a.bound != b.bound ? b.bound : a.price.saving_ns > b.price.saving_ns;
  });
  if (out.fixes.empty()) {
    out.sentence = words("profile.what_if.none");
    return out;
  }
  Args args;
  const bool one = out.fixes.size() == 1;
  const double saving = one ? sum : std::clamp(together(run, f, losses.before) * f.step_ns, max, f.step_ns);
  args.set("together", human_duration(saving)).set("share", percent(saving / f.step_ns));
  args.set("sum", human_duration(sum));
  args.count("losses", std::ssize(out.fixes)).flag("two", out.fixes.size() == 2).set("step", human_duration(f.step_ns));
  if (one) {
    out.sentence = words("profile.what_if.one", args.set("name", out.fixes.front().name)) += paced;
    return out;
  }
  out.fixes.insert(out.fixes.begin(), priced("combined", words("profile.what_if.all", args), saving, f));
  out.sentence = words("profile.what_if.sentence", args) += paced;
  if (std::abs(saving - sum) > kSameSum * sum)
    out.sentence += words(saving < sum ? "profile.what_if.less" : "profile.what_if.more", args);
  return out;
}

}  // namespace stageline
