#include "diagnosis/account_words.h"

#include "diagnosis/share_findings.h"

namespace stageline {
namespace {

constexpr double kMinShown = 0.0005;  // share of the step; less is printed as 0.0 %

AccountPart part_of(const AccountLine& line, bool rows_missing = false) {
  std::string name = "account." + std::string(line.id), own = line.name;
  if (line.id == "tail") {
    const std::string kind = line.kind == CellKind::kOptimizer    ? "optimizer"
                             : line.kind == CellKind::kCollective ? "collective"
                                                                  : "idle";
    name += "." + kind;
    if (own.empty()) own = kind;  // two lines with one name would be two figures with one name
  }
  // Where the rows of work are missing, what follows them cannot be called late.
  if (line.id == "late" && rows_missing) name += ".missing";
  return {std::string(line.id), own, words(name, Args().set("name", line.name)), line.ns};
}

}  // namespace

std::vector<AccountLine> undealt(const CauseList& causes) {
  double dealt = 0;
  for (const Cause& cause : causes.causes)
    if (cause.kind->takes("jitter")) dealt += std::max(0.0, cause.price.saving_ns - cause.price.lost_ns);
  std::vector<AccountLine> lines = causes.left;
  for (const std::string_view id : {"jitter", "replica-jitter"})
    for (AccountLine& line : lines) {
      if (line.id != id) continue;
      const double off = std::clamp(dealt, 0.0, std::max(0.0, line.ns));
      line.ns -= off, dealt -= off;
    }
  return lines;
}

bool much_is_left(const Account& account, double step_ns) {
  return std::ranges::any_of(account.parts, [&](const AccountPart& part) {
    return part.id != "schedule" && part.id != "named" && part.ns >= kLargePart * step_ns;
  });
}

Account account_of(const CauseList& causes, const std::set<std::string_view>& reported, const AccountFacts& facts) {
  Account account;
  if (!(causes.step_ns > 0) || causes.left.empty()) return account;
  const std::vector<AccountLine> left = undealt(causes);
  double named = causes.step_ns - causes.schedule_ns;
  for (const AccountLine& line : left) named -= line.ns;
  const double uneven_ns = std::clamp(facts.uneven_replicas_ns, 0.0, std::max(0.0, causes.schedule_ns));
  for (const auto& [id, ns] : {std::pair("schedule", causes.schedule_ns - uneven_ns), std::pair("named", named)})
    account.parts.push_back(part_of({id, "", CellKind::kOther, ns}));
  for (const AccountLine& line : left) account.parts.push_back(part_of(line, facts.rows_missing));
  if (uneven_ns > 0) account.parts.push_back(part_of({"replicas", "", CellKind::kOther, uneven_ns}));
  std::ranges::stable_sort(account.parts.begin() + 2, account.parts.end(), std::greater(), &AccountPart::ns);
  std::vector<AccountPart> sum;
  double found_ns = 0, others_ns = 0;
  for (const AccountPart& part : account.parts) {
    const bool schedule = part.id == "schedule";
    if (part.id == "named" || reported.contains(part.id)) found_ns += part.ns;
    else if (schedule || part.ns >= kMinLost * causes.step_ns) sum.push_back(part);
    else others_ns += part.ns;
  }
  const double shown_ns = kMinShown * causes.step_ns;
  if (found_ns >= shown_ns) sum.insert(sum.begin() + 1, {"named", "", words("account.named"), found_ns});
  if (others_ns >= shown_ns) sum.push_back({"others", "", words("part.others"), others_ns});
  // Simulations may return a little more than was recorded; then the schedule's part makes up for it.
  double over_ns = -causes.step_ns;
  for (const AccountPart& part : sum) over_ns += part.ns;
  sum.front().ns -= over_ns;
  std::vector<SpanPart> shares;
  for (const AccountPart& part : sum) {
    const Args args = Args().set("label", part.label).set("time", human_duration(part.ns));
    shares.push_back({part.id, words("account.line", args), part.ns / causes.step_ns});
  }
  const bool usual = causes.mean_of_steps < causes.all_steps;
  account.sum = words("account.sum", Args().set("parts", parts_text(shares)).flag("usual", usual));
  return account;
}

}  // namespace stageline
