#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "pipeline/measure/links.h"

namespace stageline {
namespace {

std::string times(double ratio) { return fixed(ratio, 1) + "×"; }

std::string name_of(const Part& part) {
  return std::to_string(part.rank) + (part.machine_name.empty() ? "" : " (" + part.machine_name + ")");
}

void value_of(double share, Finding& f) {
  f.weight = share;
  f.value = percent(share);
  f.value_note_en = "of a step";
  f.value_note_zh = "占每步";
}

Finding edge_finding(const Trace& trace, const Links& links, const LinkEdge& edge) {
  const Part &from = trace.parts[static_cast<size_t>(edge.from_part)],
             &to = trace.parts[static_cast<size_t>(edge.to_part)];
  const LinkClass& usual = links.classes[edge.link_class];
  const std::string a = name_of(from), b = name_of(to), in = grouped(edge.slow_steps), of = grouped(edge.steps);
  Finding f;
  f.id = "link.slow";
  value_of(edge.saving_share, f);
  if (edge.direction_known) {
    const std::string what = human_duration(edge.median_ns), ratio = times(edge.ratio);
    f.title_en = "The link from rank " + a + " to rank " + b + " is slow: " + what + " a message, " + ratio +
                 " the usual, in " + in + " of " + of + " steps";
    f.title_zh = "rank " + a + " 到 rank " + b + " 的链路较慢：" + of + " 步中有 " + in + " 步每条消息用时 " + what +
                 "，是通常的 " + ratio;
  } else {
    const std::string what = human_duration(edge.both_ns), ratio = times(edge.ratio);
    f.title_en = "The link between ranks " + a + " and " + b + " is slow: " + what + " there and back, " + ratio +
                 " the usual, in " + in + " of " + of + " steps";
    f.title_zh = "rank " + a + " 与 rank " + b + " 之间的链路较慢：" + of + " 步中有 " + in + " 步往返用时 " + what +
                 "，是通常的 " + ratio;
  }
  f.detail_en = "Others of its kind take " + human_duration(usual.median_ns) +
                "; with that the step is shorter by the share given. Their other links are fine, so look at this one: "
                "cable, switch port, route, a device pair without a direct connection.";
  f.detail_zh =
      "同类链路用时 " + human_duration(usual.median_ns) +
      "；若达到该水平，每步可缩短所示比例。两端的其他链路正常，请检查这一条：线缆、交换机端口、路由，或没有直连的"
      "设备对。";
  return f;
}

// The rank that everything slow has in common; its saving is the sum of its links', which is at most what they are
// worth together.
Finding endpoint_finding(const Trace& trace, const Links& links, const LinkEndpoint& endpoint) {
  const Part& part = trace.parts[static_cast<size_t>(endpoint.part)];
  double share = 0, worst = 0;
  for (const LinkEdge& edge : links.edges) {
    if ((edge.from_part != endpoint.part || !endpoint.slow_sender) &&
        (edge.to_part != endpoint.part || !endpoint.slow_receiver))
      continue;
    share += edge.saving_share;
    worst = std::max(worst, edge.ratio);
  }
  Finding f;
  f.id = "link.endpoint";
  value_of(std::min(share, links.saving_share), f);
  const bool both = endpoint.slow_sender && endpoint.slow_receiver;
  const std::string rank = name_of(part);
  f.title_en = "Everything that rank " + rank +
               (both                   ? " sends and receives"
                : endpoint.slow_sender ? " sends"
                                       : " receives") +
               " is slow: up to " + times(worst) + " the usual";
  f.title_zh = "rank " + rank +
               (both                   ? " 收发的"
                : endpoint.slow_sender ? " 发出的"
                                       : " 收到的") +
               "所有消息都慢：最多为通常的 " + times(worst);
  f.detail_en =
      "Its peers are fine with others, so it is this end: network card, its driver, PCIe slot, a host that is "
      "busy otherwise.";
  f.detail_zh = "它的对端与其他 rank 通信正常，因此问题在这一端：网卡、驱动、PCIe 插槽，或主机忙于其他工作。";
  return f;
}

Finding boundary_finding(const LinkBoundary& boundary) {
  const std::string a = std::to_string(boundary.stage), b = std::to_string(boundary.other_stage);
  Finding f;
  f.id = "link.boundary";
  value_of(boundary.saving_share, f);
  f.title_en = "Messages between stages " + a + " and " + b + " are slow in every replica";
  f.title_zh = "第 " + a + " 级与第 " + b + " 级之间的消息在每个副本中都慢";
  f.detail_en =
      "It is not one link or rank (" + grouped(boundary.slow) + " of " + grouped(boundary.links) +
      " links): look at what these stages have between them (another rack or switch, larger activations), and "
      "at where they are placed.";
  f.detail_zh = "问题不在某一条链路或某个 rank（" + grouped(boundary.links) + " 条链路中有 " + grouped(boundary.slow) +
                " 条较慢）：请检查两级之间的路径（跨机架、跨交换机、更大的激活），以及它们的摆放位置。";
  return f;
}

Finding many_finding(const Links& links, int64_t slow) {
  Finding f;
  f.id = "link.many";
  value_of(links.saving_share, f);
  f.title_en = grouped(slow) + " links are slow; none of them matters alone, all of them do";
  f.title_zh = grouped(slow) + " 条链路较慢；单独一条影响不大，合在一起则有影响";
  f.detail_en = "The table links says which: look for what they share, such as a switch or a host.";
  f.detail_zh = "具体链路见 links 表：请查找它们的共同点，例如同一交换机或主机。";
  return f;
}

}  // namespace

std::vector<Finding> link_findings(const Trace& trace, const Links& links) {
  std::vector<Finding> findings;
  for (const LinkEndpoint& endpoint : links.endpoints)
    if (endpoint.slow_sender || endpoint.slow_receiver) findings.push_back(endpoint_finding(trace, links, endpoint));
  for (const LinkEdge& edge : links.edges) {
    if (edge.reading != LinkReading::kCell) continue;
    // There and back are one finding where the way is not known.
    if (!edge.direction_known && edge.from_part > edge.to_part &&
        std::any_of(links.edges.begin(), links.edges.end(), [&](const LinkEdge& other) {
          return other.from_part == edge.to_part && other.to_part == edge.from_part && other.forward != edge.forward &&
                 other.reading == LinkReading::kCell;
        }))
      continue;
    findings.push_back(edge_finding(trace, links, edge));
  }
  for (const LinkBoundary& boundary : links.boundaries)
    if (std::any_of(links.edges.begin(), links.edges.end(), [&](const LinkEdge& edge) {
          const std::pair<int32_t, int32_t> stages =
              std::minmax({trace.parts[static_cast<size_t>(edge.from_part)].stage,
                           trace.parts[static_cast<size_t>(edge.to_part)].stage});
          return edge.reading == LinkReading::kBoundary && stages == std::pair(boundary.stage, boundary.other_stage);
        }))
      findings.push_back(boundary_finding(boundary));
  std::erase_if(findings, [](const Finding& f) { return !(f.weight >= kLeastLinkWorth); });
  if (findings.empty() && links.saving_share >= kLeastLinkWorth)
    findings.push_back(
        many_finding(links, std::count_if(links.edges.begin(), links.edges.end(),
                                          [](const LinkEdge& edge) { return edge.reading == LinkReading::kCheap; })));
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
  return findings;
}

}  // namespace stageline
