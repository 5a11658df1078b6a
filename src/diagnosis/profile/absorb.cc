#include "diagnosis/profile/finding_parts.h"
#include "diagnosis/profile/late_rank_findings.h"
#include "model/message_names.h"
#include "model/statistics.h"

namespace stageline {
namespace {

constexpr double kMinOfWeight = 0.5;  // a finding takes in another from more than this share of its weight on

const RankLoss* largest(const ProfileAccount& account, LossKind kind, std::string_view part = {}) {
  const RankLoss* best = nullptr;
  for (const RankAccount& rank : account)
    for (const RankLoss& x : rank.losses)
      if (x.kind == kind && x.what.find(part) != std::string::npos && (!best || x.recorded_ns > best->recorded_ns))
        best = &x;
  return best;
}

void name_exposed(const ProfileAccount& account, LossKind kind, std::string_view part, Finding& finding) {
  const RankLoss* loss = largest(account, kind, part);
  if (!loss) return;
  Args args;
  // Every collective is launched by some call of the runtime: that alone names no place.
  const Culprit& at = loss->at;
  const bool bare = kind == LossKind::kCollective && at.op.empty() && at.range.empty() && at.where().empty() &&
                    !is_communication_call(at.call);
  args.set("what", loss->what).set("at", bare ? Text() : at.text()).set("detail", finding.detail);
  args.set("stream", loss->stream >= 0 ? std::to_string(loss->stream) : "");
  args.set("waits",
           loss->waiting >= 0 ? words("profile.most.waits", Args().set("waiting", int64_t{loss->waiting})) : Text());
  finding.detail = words("profile.most", args);
  const int64_t given = account.size();
  if (loss->members > given)
    finding.detail += words("profile.exposed.absent", Args().count("members", loss->members).count("given", given));
  finding.places = loss->at.places();
  finding.key = loss->at.key();
}

bool is_of_host(const Finding& finding) {
  return finding.id.starts_with("host.") || finding.id == "input.loading" || finding.id == "launch.bound";
}

// The same copies make one finding, the one that says what is wrong with them.
Finding* owner_of_copies(std::vector<Finding>& list, const Finding& finding) {
  if (finding.id != "memory.exposed") return nullptr;
  Finding* pageable = find_finding(list, "copies.pageable");
  return pageable && pageable->weight > kMinOfWeight * finding.weight ? pageable : nullptr;
}

// The longest piece of a loss that lies in a long step. The devices' steps end with their last work, so a pause at the
// end of a step lengthens the next one.
const RankLoss* longest_in(const ProfileAccount& account, const Finding& step) {
  const RankLoss* longest = nullptr;
  for (const RankAccount& rank : account)
    for (const RankLoss& loss : rank.losses)
      if ((loss.longest_step == *step.step || loss.longest_step + 1 == *step.step) &&
          (!longest || loss.longest_ns > longest->longest_ns))
        longest = &loss;
  return longest;
}

// A long step is reported with what made it long, where one piece of that is most of its excess. Otherwise it gives the
// time that both share.
Finding* cause_of_step(const ProfileFacts& facts, const ProfileAccount& account, std::vector<Finding>& list,
                       Finding& finding) {
  if (finding.id != "step.outlier" || !finding.step) return nullptr;
  const RankLoss* loss = longest_in(account, finding);
  if (!loss) return nullptr;
  const auto cause = std::ranges::find_if(list, [&](const Finding& y) { return is_about(y, *loss); });
  if (cause == list.end()) return nullptr;
  const double share = share_or_zero(loss->longest_ns, facts.max_step_ns - facts.median_step_ns);
  if (share > kMinOfWeight) {
    cause->detail += words("profile.step.of_cause", Args().set("title", finding.title).set("value", finding.value));
    return &*cause;
  }
  Args args;
  args.set("time", human_duration(loss->longest_ns)).set("title", cause->title);
  finding.detail += words("profile.step.shared", args);
  return nullptr;
}

// A late rank's finding takes in why that rank is late. It says already that its streams wait.
Finding* late_rank_of_own(const ProfileFacts& facts, std::vector<Finding>& list, const Finding& finding) {
  Finding* late = facts.late && facts.late->by_computing ? nullptr : finding_of_late_rank(facts, list);
  const bool idle = finding.id == "device.idle" && finding.key.empty();
  if (!late || (!is_of_host(finding) && !idle) || finding.rank != late->rank) return nullptr;
  if (idle && !(finding.price.saving_ns > 0)) return late;
  late->detail += words("profile.late.own", Args().set("title", finding.title).set("detail", finding.detail));
  if (facts.lateness_priced) return late;
  late->weight = std::max(late->weight, finding.weight);
  late->value = percent(late->weight);
  late->price.saving_ns = late->weight * facts.step_ns;
  return late;
}

// The finding of slow links from which most of the lateness of a rank follows: its transfers hold it up, and so it
// comes late to the next collective.
Finding* link_of_late_rank(std::vector<Finding>& list, const Finding& finding) {
  if (finding.id != "rank.late" && finding.id != "comm.waiting") return nullptr;
  const auto it = std::ranges::find_if(list, [&](const Finding& link) {
    const bool of_rank = finding.id == "comm.waiting" || std::ranges::any_of(link.places, [&](const Place& place) {
                           return std::ranges::find(place.ranks, finding.rank) != place.ranks.end();
                         });
    return link.id == "comm.slow_link" && of_rank && link.weight >= kMinOfWeight * finding.weight;
  });
  return it == list.end() ? nullptr : &*it;
}

}  // namespace

void name_largest(const ProfileFacts& facts, const ProfileAccount& account, std::vector<Finding>& list) {
  if (Finding* x = find_finding(list, "comm.exposed")) name_exposed(account, LossKind::kCollective, {}, *x);
  if (Finding* x = find_finding(list, "memory.exposed")) name_exposed(account, LossKind::kCopy, {}, *x);
  Finding* x = find_finding(list, "copies.pageable");
  if (!x) return;
  // Copies under other work cost nothing. Where the host sets the pace, a replay wins nothing without the copies, and
  // only the device's time for them is known.
  double exposed = 0, recorded = 0;
  for (const RankAccount& rank : account)
    for (const RankLoss& loss : rank.losses)
      if (loss.kind == LossKind::kCopy && loss.what.find("Pageable") != std::string::npos)
        exposed += loss.price_ns, recorded += loss.recorded_ns;
  x->weight = share_or_zero(exposed > 0 ? exposed : recorded, window_of(account));
  x->value = percent(x->weight);
  x->price.saving_ns = exposed > 0 ? x->weight * facts.step_ns : 0;
  if (exposed > 0) x->detail += words("profile.pageable.saving", Args().set("share", percent(x->weight)));
  name_exposed(account, LossKind::kCopy, "Pageable", *x);
  if (!(x->weight > 0)) list.erase(list.begin() + (x - list.data()));
}

void absorb(const ProfileFacts& facts, const ProfileAccount& account, std::vector<Finding>& list) {
  const auto take_in = [&](auto&& owner_of) {
    const auto it = std::ranges::find_if(list, [&](Finding& finding) { return owner_of(finding) != nullptr; });
    if (it != list.end()) list.erase(it);
  };
  take_in([&](const Finding& finding) { return owner_of_copies(list, finding); });
  take_in([&](const Finding& finding) { return link_of_late_rank(list, finding); });
  take_in([&](Finding& finding) { return cause_of_step(facts, account, list, finding); });
  take_in([&](const Finding& finding) { return late_rank_of_own(facts, list, finding); });
}

}  // namespace stageline
