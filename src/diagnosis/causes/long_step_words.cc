#include "diagnosis/causes/long_step_words.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "base/number.h"
#include "base/text.h"

namespace stageline {
namespace {

constexpr double kMostUsualSteps = 100;  // usual steps that no cell takes

class Words {
 public:
  explicit Words(const Trace& trace) : trace_(trace) {}

  LongReason of(const LongStep& step) const {
    const std::string from = std::to_string(step.from_stage), to = std::to_string(step.stage);
    const std::string own = human_duration(step.own_ns), others = human_duration(step.others_ns);
    const std::string rank =
        step.part == kUnknown ? "" : std::to_string(trace_.parts[static_cast<size_t>(step.part)].rank);
    const std::string what = label(step), link = from + "-" + to;
    const std::string also_en =
        step.replicas > 1 ? ", and as long in " + std::to_string(step.replicas - 1) + " other replicas" : "";
    const std::string also_zh = step.replicas > 1 ? "，另有 " + std::to_string(step.replicas - 1) + " 个副本同样" : "";
    switch (step.by) {
      case LongBy::kMessage:
        return {"a message from stage " + from + " to stage " + to + what_for(what) + " took " + own + also_en,
                "从第 " + from + " 级到第 " + to + " 级的一条消息" + (what.empty() ? "" : "（" + what + "）") +
                    "用了 " + own + also_zh,
                "hang:" + link + " message-tail:" + link};
      case LongBy::kPause:
        return {"rank " + rank + " started " + what + " " + own + " late, though everything was there" + also_en,
                "rank " + rank + " 在一切就绪后仍晚 " + own + " 才开始 " + what + also_zh,
                "rank:" + rank + " host:" + rank + " host"};
      case LongBy::kLate:
        return {"rank " + rank + " started " + what + " " + own + " late: its message from stage " + from +
                    ", which nobody recorded, or its host" + also_en,
                "rank " + rank + " 晚 " + own + " 才开始 " + what + "：可能是来自第 " + from +
                    " 级的消息（未记录），也可能是其主机" + also_zh,
                "hang:" + link + " message-tail:" + link + " rank:" + rank + " host:" + rank};
      case LongBy::kCell:
        return {what + " of rank " + rank + " took " + own + ", its usual time is " + others + also_en,
                "rank " + rank + " 的 " + what + " 用了 " + own + "，通常为 " + others + also_zh,
                "rank:" + rank + only_of_its_stage(step)};
      case LongBy::kTail:
        return {(what.empty() ? "a collective" : what) + " took " + own + ", its usual time is " + others,
                (what.empty() ? "集合通信" : what) + "用了 " + own + "，通常为 " + others,
                "tail:" + dashed(what) + " tail"};
      case LongBy::kRank:
        return {took_en("rank " + rank, step), took_zh("rank " + rank, step),
                "rank:" + rank + (step.by_host() ? " host:" + rank : only_of_its_stage(step))};
      case LongBy::kReplica: {
        const std::string dp = std::to_string(trace_.parts[static_cast<size_t>(step.parts.front())].dp);
        return {took_en("replica " + dp + " (ranks " + ranks(step, ", ") + ")", step),
                took_zh("副本 " + dp + "（rank " + ranks(step, "、") + "）", step),
                "replica:" + dp + " ranks:" + ranks(step, "+")};
      }
      case LongBy::kStage:
        return {took_en("stage " + to + " in all replicas", step), took_zh("所有副本的第 " + to + " 级", step),
                "stage:" + to + " ranks:" + ranks(step, "+")};
      case LongBy::kMachine: {
        const std::string& machine = trace_.parts[static_cast<size_t>(step.parts.front())].machine_name;
        return {took_en(machine + " (ranks " + ranks(step, ", ") + ")", step),
                took_zh(machine + "（rank " + ranks(step, "、") + "）", step),
                "node:" + machine + " ranks:" + ranks(step, "+")};
      }
      case LongBy::kLink:
        return {grouped(step.count) + " messages from stage " + from + " to stage " + to + " took " + own +
                    " on average, usually " + others,
                "从第 " + from + " 级到第 " + to + " 级的 " + grouped(step.count) + " 条消息平均用了 " + own +
                    "，通常为 " + others,
                "link:" + link};
      case LongBy::kHosts:
        return {"on " + grouped(static_cast<int64_t>(step.parts.size())) + " ranks work started late " +
                    grouped(step.count) + " times, by " + human_duration(step.late_ns) +
                    " in sum, though everything was there",
                grouped(static_cast<int64_t>(step.parts.size())) + " 个 rank 上有 " + grouped(step.count) +
                    " 次工作在一切就绪后仍晚开始，合计 " + human_duration(step.late_ns),
                "host"};
      case LongBy::kAll: return {took_en("all ranks", step), took_zh("所有 rank", step), "all"};
      case LongBy::kNothing: break;
    }
    return {};
  }

 private:
  // Who took so long, and what: their cells, or the time before these.
  static std::string took_en(const std::string& who, const LongStep& step) {
    if (step.by_host())
      return who + " started work late, by " + human_duration(step.late_ns) + " in sum, though everything was there";
    return who + (step.parts.size() > 1 ? " took long: their work is " : " took long: its work is ") +
           fixed(step.own_ns / step.others_ns, 2) + "× the usual, " + human_duration(step.own_ns) + " against " +
           human_duration(step.others_ns) + (step.parts.size() > 1 ? " over all of them" : "");
  }
  static std::string took_zh(const std::string& who, const LongStep& step) {
    if (step.by_host()) return who + "在一切就绪后仍晚开始，合计 " + human_duration(step.late_ns);
    return who + "变慢：工作用时合计 " + human_duration(step.own_ns) + "，通常为 " + human_duration(step.others_ns) +
           "（" + fixed(step.own_ns / step.others_ns, 2) + " 倍）";
  }
  std::string ranks(const LongStep& step, std::string_view between) const {
    constexpr size_t kShown = 8;
    std::string text;
    for (size_t i = 0; i < std::min(step.parts.size(), kShown); ++i)
      text +=
          (i == 0 ? "" : std::string(between)) + std::to_string(trace_.parts[static_cast<size_t>(step.parts[i])].rank);
    return text + (step.parts.size() > kShown ? std::string(between) + "…" : "");
  }
  // With one replica a slow rank and a heavy stage are the same.
  std::string only_of_its_stage(const LongStep& step) const {
    const int32_t stage = trace_.parts[static_cast<size_t>(step.part)].stage;
    const auto alike =
        std::count_if(trace_.parts.begin(), trace_.parts.end(), [&](const Part& p) { return p.stage == stage; });
    return alike == 1 ? " stage:" + std::to_string(stage) : "";
  }
  static std::string what_for(const std::string& what) { return what.empty() ? "" : " (for " + what + ")"; }
  std::string label(const LongStep& step) const {
    if (step.cell == kNoCell) return "";
    const Cell cell = trace_.cells.at(step.cell);
    if (cell.kind == CellKind::kOptimizer) return "optimizer";
    if (cell.kind == CellKind::kCollective) return std::string(trace_.slice_name(cell));
    return cell_label(cell, cell.chunk > 0);
  }
  const Trace& trace_;
};

}  // namespace

LongReason long_reason(const Trace& trace, const LongStep& step) { return Words(trace).of(step); }

std::vector<Finding> long_step_findings(const Trace& trace, const CauseList& causes) {
  struct Group {
    LongReason reason;
    const LongStep* worst = nullptr;
    int64_t count = 0;
    double lost_ns = 0;
    std::string steps;
  };
  const Words words(trace);
  std::vector<Group> groups;
  for (const LongStep& step : causes.long_steps) {
    const LongReason reason = words.of(step);
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.reason.keys == reason.keys; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{});
    if (!group->worst || step.excess_ns > group->worst->excess_ns) group->worst = &step, group->reason = reason;
    if (++group->count <= 6) group->steps += (group->steps.empty() ? "" : ", ") + std::to_string(step.step);
    group->lost_ns += step.excess_ns / static_cast<double>(std::max<int64_t>(causes.all_steps, 1));
  }
  std::vector<Finding> findings;
  for (const Group& group : groups) {
    if (group.lost_ns < kLeastLost * causes.wall_ns) continue;
    const LongStep& worst = *group.worst;
    const std::string step = std::to_string(worst.step), all = grouped(causes.all_steps), n = grouped(group.count);
    const double ratio = worst.span_ns / worst.usual_ns;
    const std::string times = (ratio >= 1e6    ? "> 1 000 000"
                               : ratio >= 1000 ? grouped(static_cast<int64_t>(ratio))
                                               : fixed(ratio, 2));
    const bool first = group.count == 1 && worst.by == LongBy::kAll && worst.step == causes.first_step;
    Finding f;
    f.id = "step.outlier";
    f.cause = group.reason.keys;
    f.step = worst.step;
    if (worst.part != kUnknown) f.rank = trace.parts[static_cast<size_t>(worst.part)].rank;
    f.lost_ns_per_step = f.price.saving_ns = group.lost_ns;
    f.weight = group.lost_ns / causes.wall_ns;
    f.value = times + "×";
    f.value_note_en = "the usual step";
    f.value_note_zh = "相对通常的步";
    const bool known = !group.reason.en.empty();
    if (known) {
      f.title_en = "Step " + step + " takes " + times + "× the usual step: " + group.reason.en;
      f.title_zh = "第 " + step + " 步是通常的 " + times + " 倍：" + group.reason.zh;
    } else {
      f.title_en =
          n + " of " + all + (group.count == 1 ? " steps takes" : " steps take") + " over 1.3× the median step";
      f.title_zh = all + " 步中有 " + n + " 步超过中位步的 1.3 倍";
    }
    f.detail_en =
        (group.count > 1 ? "Steps " + group.steps + (group.count > 6 ? ", …" : "") + " are long" +
                               (known ? " for the same reason" : "") + "; the longest is step " + step + " with "
                         : "It is step " + step + " with ") +
        human_duration(worst.span_ns) + " against " + human_duration(worst.usual_ns) + "." +
        (known ? " Without that " + percent(std::min(1.0, worst.share)) + " of what it takes more is gone."
               : " No single message, start, cell or rank makes most of it.") +
        " On average over all steps that is " + human_duration(group.lost_ns) + " a step, " + percent(f.weight) +
        " of the time; other findings do not count these steps." +
        (first ? " It is the first: warm-up, which --steps leaves out." : "");
    f.detail_zh = (group.count > 1 ? "第 " + group.steps + (group.count > 6 ? "、…" : "") + " 步" +
                                         (known ? "因同一原因" : "") + "偏长；最长的是第 " + step + " 步，"
                                   : "是第 " + step + " 步，") +
                  human_duration(worst.span_ns) + "，通常为 " + human_duration(worst.usual_ns) + "。" +
                  (known ? "去掉它即可消除超出部分的 " + percent(std::min(1.0, worst.share)) + "。"
                         : "没有哪条消息、哪次启动、哪个单元或 rank 单独造成其大部分。") +
                  "平摊到全部步，每步 " + human_duration(group.lost_ns) + "，占总时间的 " + percent(f.weight) +
                  "；其他结论不计入这些步。" + (first ? "它是首步：预热，可用 --steps 排除。" : "");
    if (worst.by == LongBy::kCell && worst.own_ns >= kMostUsualSteps * worst.usual_ns) {
      const Cell cell = trace.cells.at(worst.cell);
      const std::string label = cell_label(cell, cell.chunk > 0), takes = human_duration(worst.own_ns);
      const std::string rank = std::to_string(trace.parts[static_cast<size_t>(worst.part)].rank);
      f.detail_en += " In it " + label + " of rank " + rank + " is said to last " + takes +
                     ": a hang, or a duration that was written wrongly; look at that row.";
      f.detail_zh +=
          "其中 rank " + rank + " 的 " + label + " 记录为 " + takes + "：可能是挂起，也可能是写错的用时，请检查该行。";
    }
    f.price.fix_en = "a step as long as the usual one";
    f.price.fix_zh = "与通常的步一样长";
    f.evidence = {"stragglers", ""};
    findings.push_back(std::move(f));
  }
  return findings;
}

}  // namespace stageline
