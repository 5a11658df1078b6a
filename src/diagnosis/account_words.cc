#include "diagnosis/account_words.h"

#include <algorithm>

#include "base/number.h"

namespace stageline {
namespace {

AccountPart part_of(const AccountLine& line) {
  AccountPart part{std::string(line.id), line.name, "", "", line.ns};
  const std::string name = line.name.empty() ? "" : " (" + line.name + ")",
                    name_zh = line.name.empty() ? "" : "（" + line.name + "）";
  const auto say = [&](std::string en, std::string zh) {
    part.label_en = std::move(en), part.label_zh = std::move(zh);
  };
  if (line.id == "imbalance") say("stages of unequal work", "级间不均衡");
  if (line.id == "jitter") say("cells of the same work that differ", "同样的工作用时不同");
  if (line.id == "message") say("messages", "消息");
  if (line.id == "late") say("work that starts late", "晚开始");
  if (line.id == "rest") say("what replays leave open", "重放未能解释的部分");
  if (line.id == "between") say("time between steps" + name, "步间时间" + name_zh);
  if (line.id == "tail" && line.kind == CellKind::kOptimizer) say("the optimizer" + name, "优化器" + name_zh);
  if (line.id == "tail" && line.kind != CellKind::kOptimizer)
    say("exposed collectives" + name, "未掩盖的集合通信" + name_zh);
  return part;
}

}  // namespace

Account account_of(const CauseList& causes) {
  Account account;
  if (!(causes.step_ns > 0) || causes.left.empty()) return account;
  double named = causes.step_ns - causes.schedule_ns;
  for (const AccountLine& line : causes.left) named -= line.ns;
  account.parts.push_back(
      {"schedule", "", "compute and the schedule's own waiting", "计算与调度自身的等待", causes.schedule_ns});
  account.parts.push_back({"named", "", "the findings together", "各项结论合计", named});
  for (const AccountLine& line : causes.left) account.parts.push_back(part_of(line));
  std::stable_sort(account.parts.begin() + 2, account.parts.end(),
                   [](const AccountPart& a, const AccountPart& b) { return a.ns > b.ns; });
  std::string en, zh;
  for (auto part = account.parts.begin() + 2; part != account.parts.end(); ++part) {
    if (part->ns < kLeastLost * causes.step_ns) break;
    const std::string text = human_duration(part->ns), share = percent(part->ns / causes.step_ns);
    en += (en.empty() ? "" : ", ") + part->label_en + " " + text + " (" + share + ")";
    zh += (zh.empty() ? "" : "，") + part->label_zh + " " + text + "（" + share + "）";
  }
  if (en.empty()) return account;
  account.left_en =
      "Of a step also go to what is no single fault by the evidence: " + en + "; everything else is below 1 %.";
  account.left_zh = "每步还有这些时间，按证据不归于某一个故障：" + zh + "；其余各项均不到 1 %。";
  return account;
}

}  // namespace stageline
