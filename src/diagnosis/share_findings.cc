#include "diagnosis/share_findings.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/number.h"
#include "base/words.h"
#include "model/stage_costs.h"

namespace stageline {

double part_share(const Headline& headline, std::string_view id) {
  double share = 0;
  for (const SpanPart& part : headline.parts)
    if (part.id == id) share += part.share;
  return share;
}

double left_share(const CauseList& causes, std::string_view id) {
  double left_ns = 0;
  for (const AccountLine& line : causes.left)
    if (line.id == id) left_ns += line.ns;
  return causes.step_ns > 0 ? left_ns / causes.step_ns : 0;
}

namespace {

Finding of_share(const char* id, double share, double step_ns) {
  Finding f;
  f.id = id;
  f.weight = share;
  f.value = percent(share);
  f.value_note_en = "of a step";
  f.value_note_zh = "占每步";
  f.lost_ns_per_step = share * step_ns;
  return f;
}

// The median of what messages take, in words ("" without any), and whether they take about the same into every stage.
struct UsualMessage {
  std::string words;
  bool alike = true;
};
UsualMessage usual_message(const StepGraph& graph) {
  constexpr double kAlike = 1.5;  // of the quickest
  std::vector<double> all;
  std::map<std::pair<int32_t, bool>, std::vector<double>> links;  // stage that receives, forward
  for (size_t i = 0; i < graph.size(); ++i) {
    const bool forward = graph.kind[i] == CellKind::kRecvForward;
    if (!forward && graph.kind[i] != CellKind::kRecvBackward) continue;
    all.push_back(std::max(0.0, graph.dur_ns[i]));
    links[{graph.stage(i), forward}].push_back(all.back());
  }
  if (all.empty()) return {};
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (auto& [link, durations] : links) {
    const double own = median_of(std::move(durations));
    least = std::min(least, own), most = std::max(most, own);
  }
  return {human_duration(median_of(std::move(all))), most <= kAlike * least};
}

// Which replica the others wait for.
struct LastReplica {
  int32_t dp = kUnknown;                       // that is last most often
  int64_t last_in = 0, steps = 0, others = 0;  // steps in which it is; all; how many replicas are last in some step
};
LastReplica last_replica(const StepGraph& graph) {
  std::map<int32_t, int64_t> last_in;
  LastReplica found;
  for (const GraphStep& step : graph.steps) {
    int32_t last = kUnknown;
    int64_t end_ns = INT64_MIN;
    for (uint32_t op = step.begin; op < step.end; ++op)
      if (is_compute(graph.kind[op]) && graph.dp(op) != kUnknown && graph.end_ns[op] > end_ns)
        end_ns = graph.end_ns[op], last = graph.dp(op);
    if (last == kUnknown) continue;
    ++found.steps;
    ++last_in[last];
  }
  found.others = static_cast<int64_t>(last_in.size());
  for (const auto& [dp, count] : last_in)
    if (count > found.last_in) found.dp = dp, found.last_in = count;
  return found;
}

void add_replicas(const Trace& trace, double share, const CauseList& causes, const StepGraph& graph,
                  ShareFindings& out) {
  const LastReplica last = last_replica(graph);
  if (share < kLargePart || last.steps == 0) return;
  const bool replicas = trace.context_parallel <= 1;  // else one may be several pipelines
  const std::string one_en = replicas ? "replica" : "pipeline", one_zh = replicas ? "副本" : "流水线";
  const std::string text = percent(share), all = grouped(last.steps), which = std::to_string(last.dp);
  const bool same = 2 * last.last_in > last.steps && last.steps > 1;
  const std::string who_en =
      same              ? one_en + " " + which + ", the last in " + grouped(last.last_in) + " of " + all + " steps"
      : last.steps == 1 ? "the last one, " + one_en + " " + which
                        : "the last one, which is another from step to step (" + grouped(last.others) + " of them in " +
                              all + " steps)";
  const std::string who_zh = same ? one_zh + " " + which + "（" + all + " 步中有 " + grouped(last.last_in) + " 步最晚）"
                             : last.steps == 1
                                 ? "最晚的" + one_zh + " " + which
                                 : "最晚的一个（各步不同，" + all + " 步中共有 " + grouped(last.others) + " 个）";
  const std::string end_en = " before gradients are exchanged", end_zh = "，才能同步梯度";
  out.replicas_en = "The " + text + " of a step in which " + one_en + "s wait are waits for " + who_en + end_en + ".";
  out.replicas_zh = "各" + one_zh + "等待的 " + text + " 是在等" + who_zh + end_zh + "。";
  // What holds the last one up has a finding of its own.
  for (const Cause& c : causes.causes)
    if (2 * c.lost_ns >= share * causes.step_ns) return;
  Finding f = of_share("replicas.wait", share, causes.step_ns);
  f.title_en = (replicas ? "Replicas wait " : "Pipelines wait ") + text + " of a step for " +
               (same ? one_en + " " + which : "the last one of each step") + ": give them equal work";
  f.title_zh = "各" + one_zh + "每步有 " + text + " 的时间在等" + (same ? one_zh + " " + which : "当步最晚的一个") +
               "：请使它们的工作量相同";
  f.detail_en = "They wait for " + who_en + end_en + ". " +
                (same ? "Look at what it is given and at its devices and links."
                      : "Even out what they are given (sequence lengths, packing); no one device is to blame.");
  f.detail_zh = "等的是" + who_zh + end_zh + "。" +
                (same ? "请检查它分到的数据、设备与链路。"
                      : "请均衡各" + one_zh + "分到的数据（序列长度、打包）；没有哪台设备是固定的原因。");
  f.evidence = {"waterfall", "waterfall-steps"};
  out.list.push_back(std::move(f));
}

}  // namespace

ShareFindings share_findings(const Trace& trace, const Headline& headline, const CauseList& causes,
                             const StepGraph& graph) {
  ShareFindings out;
  std::vector<Finding>& findings = out.list;
  if (!(causes.step_ns > 0)) return out;
  add_replicas(trace, part_share(headline, "replicas"), causes, graph, out);
  // What replays without every named cause leave to messages, and to starts that nothing held up; less what the closing
  // sentence suspects and cannot tell from chance, or not before the causes above are mended.
  double messages = left_share(causes, "message"), rest = left_share(causes, "late") + left_share(causes, "rest");
  for (const std::vector<Cause>* suspected : {&causes.doubtful, &causes.hidden})
    for (const Cause& c : *suspected) {
      const bool by_starts = c.kind == CauseKind::kPauses || c.kind == CauseKind::kLateWorker ||
                             c.kind == CauseKind::kLateStarts || c.kind == CauseKind::kBlockingSends;
      if (by_starts) rest -= c.lost_ns / causes.step_ns;
      if (c.kind == CauseKind::kSlowLink || c.kind == CauseKind::kMessageTail) messages -= c.lost_ns / causes.step_ns;
    }
  if (messages >= kLargePart) {
    Finding f = of_share("messages.slow", messages, causes.step_ns);
    const UsualMessage usual = usual_message(graph);
    Args args;
    args.set("share", f.value).set("usual", usual.words).flag("alike", usual.alike);
    args.flag("links", std::any_of(causes.causes.begin(), causes.causes.end(),
                                   [](const Cause& c) { return c.kind == CauseKind::kSlowLink; }));
    const Text title = words("messages.slow.title", args), detail = words("messages.slow.detail", args);
    f.title_en = title.en, f.title_zh = title.zh;
    f.detail_en = detail.en, f.detail_zh = detail.zh;
    f.evidence = {"links", ""};
    findings.push_back(std::move(f));
  }
  if (rest >= kLargePart) {
    Finding f = of_share("unexplained", rest, causes.step_ns);
    const bool more = !causes.causes.empty();
    f.title_en = f.value + " of a step is explained by nothing" + (more ? " more" : "") +
                 " in this recording: see what the hosts do between cells";
    f.title_zh = "每步有 " + f.value + (more ? " 再无" : " 没有") + "记录可以解释：请查看主机在两个单元之间做什么";
    f.detail_en =
        "Work could have started, by what was recorded, and did not: launches, data loading, logging, sends and "
        "receives that nobody recorded. A profile with host threads, or with messages, tells which.";
    f.detail_zh =
        "按记录来看工作本可开始却没有开始：可能是下发、数据加载、日志，或未被记录的收发。带主机线程或消息的剖析可以区分"
        "。";
    f.evidence = {"theory", "late-reasons"};
    findings.push_back(std::move(f));
  }
  return out;
}

void add_share_findings(ShareFindings shares, std::vector<Finding>& findings) {
  for (Finding& f : findings) {
    if (shares.replicas_en.empty() || (f.id != "sequence.long" && f.id != "rank.slow")) continue;
    f.detail_en += " " + shares.replicas_en;
    f.detail_zh += shares.replicas_zh;
    break;
  }
  for (Finding& f : shares.list) findings.push_back(std::move(f));
}

}  // namespace stageline
