#include "diagnosis/account_words.h"

#include <algorithm>
#include <utility>

#include "base/number.h"
#include "base/words.h"
#include "diagnosis/causes/cause_kind.h"

namespace stageline {
namespace {

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
  std::stable_sort(account.parts.begin() + 2, account.parts.end(),
                   [](const AccountPart& a, const AccountPart& b) { return a.ns > b.ns; });
  Text lines;
  for (auto part = account.parts.begin() + 2; part != account.parts.end(); ++part) {
    if (part->ns < kMinLost * causes.step_ns) break;
    if (reported.contains(part->id)) continue;
    Args args;
    args.flag("further", !lines.empty()).set("label", part->label);
    args.set("time", human_duration(part->ns)).set("share", percent(part->ns / causes.step_ns));
    lines += words("account.line", args);
  }
  if (lines.empty()) return account;
  account.left = words("account.left", Args().set("lines", lines).flag("found", !causes.causes.empty()));
  return account;
}

}  // namespace stageline
