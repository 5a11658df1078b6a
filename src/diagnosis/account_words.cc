#include "diagnosis/account_words.h"

#include <algorithm>
#include <utility>

#include "base/number.h"
#include "base/words.h"

namespace stageline {
namespace {

AccountPart part_of(const AccountLine& line) {
  std::string name = "account." + std::string(line.id);
  if (line.id == "tail")
    name += line.kind == CellKind::kOptimizer    ? ".optimizer"
            : line.kind == CellKind::kCollective ? ".collective"
                                                 : ".idle";
  const Text label = words(name, Args().set("name", line.name));
  return {std::string(line.id), line.name, label.en, label.zh, line.ns};
}

}  // namespace

Account account_of(const CauseList& causes, const std::set<std::string_view>& told) {
  Account account;
  if (!(causes.step_ns > 0) || causes.left.empty()) return account;
  double named = causes.step_ns - causes.schedule_ns;
  for (const AccountLine& line : causes.left) named -= line.ns;
  for (const auto& [id, ns] : {std::pair("schedule", causes.schedule_ns), std::pair("named", named)})
    account.parts.push_back(part_of({id, "", CellKind::kOther, ns}));
  for (const AccountLine& line : causes.left) account.parts.push_back(part_of(line));
  std::stable_sort(account.parts.begin() + 2, account.parts.end(),
                   [](const AccountPart& a, const AccountPart& b) { return a.ns > b.ns; });
  Text lines;
  for (auto part = account.parts.begin() + 2; part != account.parts.end(); ++part) {
    if (part->ns < kLeastLost * causes.step_ns) break;
    if (told.contains(part->id)) continue;
    Args args;
    args.flag("further", !lines.empty()).set("label", Text{part->label_en, part->label_zh});
    args.set("time", human_duration(part->ns)).set("share", percent(part->ns / causes.step_ns));
    lines += words("account.line", args);
  }
  if (lines.empty()) return account;
  const Text left = words("account.left", Args().set("lines", lines));
  account.left_en = left.en, account.left_zh = left.zh;
  return account;
}

}  // namespace stageline
