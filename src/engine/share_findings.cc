#include "engine/share_findings.h"

#include <algorithm>
#include <string_view>

#include "base/number.h"
#include "model/stage_costs.h"

namespace stageline {
namespace {

double part_share(const Headline& headline, std::string_view id) {
  double share = 0;
  for (const SpanPart& part : headline.parts)
    if (part.id == id) share += part.share;
  return share;
}

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

// The median of what messages take, in words; "" without any.
std::string usual_message(const StepGraph& graph) {
  std::vector<double> all;
  for (size_t i = 0; i < graph.size(); ++i)
    if (graph.kind[i] == CellKind::kRecvForward || graph.kind[i] == CellKind::kRecvBackward)
      all.push_back(std::max(0.0, graph.dur_ns[i]));
  return all.empty() ? "" : human_duration(median_of(std::move(all)));
}

}  // namespace

void add_share_findings(const Headline& headline, const CauseList& causes, const StepGraph& graph,
                        std::vector<Finding>& findings) {
  if (!(causes.step_ns > 0)) return;
  double of_links = 0, of_hosts = 0;  // what causes name already
  for (const Cause& c : causes.causes) {
    const double share = c.lost_ns / causes.step_ns;
    if (c.kind == CauseKind::kSlowLink) of_links += share;
    if (c.kind == CauseKind::kPauses || c.kind == CauseKind::kLateWorker || c.kind == CauseKind::kLateStarts)
      of_hosts += share;
  }
  const double messages = part_share(headline, "message"), rest = part_share(headline, "rest");
  // Late starts are counted as messages where these were seen as gaps, and as rest else.
  const double hosts_left = std::max(0.0, of_hosts - std::max(0.0, rest));
  if (messages - of_links - hosts_left >= kLargePart) {
    Finding f = of_share("messages.slow", messages, causes.step_ns);
    const std::string beside_en = of_links > 0 ? ", most of it on all links alike" : " on every link";
    const std::string beside_zh = of_links > 0 ? "，多半不是个别链路所致" : "（各链路皆然）";
    const std::string usual = usual_message(graph);
    f.title_en = "Messages cost " + f.value + " of a step" + beside_en + ": hide them, or send fewer";
    f.title_zh = "消息占每步的 " + f.value + beside_zh + "：请掩盖或减少消息";
    f.detail_en =
        (usual.empty() ? std::string("No") : "One takes " + usual + " (median), and no") +
        " single cable explains it. Post receives ahead and send without waiting, so that messages pass while ranks "
        "compute; see that neighbouring stages talk over the fast interconnect; larger micro-batches send fewer "
        "messages." +
        (hosts_left > 0 ? " Part of it are late starts: a gap between two cells counts as its message's." : "");
    f.detail_zh =
        (usual.empty() ? std::string() : "每条消息通常用时 " + usual + "。") +
        "不是某一条线缆的问题。请提前发起接收、发送不等待对方，让消息在计算时传输；检查相邻级之间是否走高速互联；"
        "更大的微批可减少消息数。" +
        (hosts_left > 0 ? "其中一部分是晚开始：两个单元之间的空隙计为消息。" : "");
    f.evidence = {"links", ""};
    findings.push_back(std::move(f));
  }
  if (rest - of_hosts >= kLargePart) {
    Finding f = of_share("unexplained", of_hosts > 0 ? rest - of_hosts : rest, causes.step_ns);
    f.title_en = f.value + " of a step is explained by nothing" + (of_hosts > 0 ? " more" : "") +
                 " in this recording: see what the hosts do between cells";
    f.title_zh =
        "每步有 " + f.value + (of_hosts > 0 ? " 再无" : " 没有") + "记录可以解释：请查看主机在两个单元之间做什么";
    f.detail_en =
        "Work could have started, by what was recorded, and did not: launches, data loading, logging, sends and "
        "receives that nobody recorded. A profile with host threads, or with messages, tells which.";
    f.detail_zh =
        "按记录来看工作本可开始却没有开始：可能是下发、数据加载、日志，或未被记录的收发。带主机线程或消息的剖析可以区分"
        "。";
    f.evidence = {"theory", "late-reasons"};
    findings.push_back(std::move(f));
  }
}

}  // namespace stageline
