#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "model/finding_words.h"
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
  f.value_note = words("note.step");
}

Finding edge_finding(const Trace& trace, const Links& links, const LinkEdge& edge) {
  const Part &from = trace.parts[edge.from_part], &to = trace.parts[edge.to_part];
  const LinkClass& usual = links.classes[edge.link_class];
  Finding f;
  f.id = "link.slow";
  value_of(edge.saving_share, f);
  Args args;
  args.set("from", name_of(from)).set("to", name_of(to)).flag("one_way", edge.direction_known);
  args.set("time", human_duration(edge.direction_known ? edge.median_ns : edge.both_ns))
      .set("ratio", times(edge.ratio));
  args.set("slow", grouped(edge.slow_steps)).set("steps", grouped(edge.steps));
  say(f, "finding.link", args.set("usual", human_duration(usual.median_ns)));
  return f;
}

// A finding for a rank whose links are all slow. Its saving is the sum of its links' savings, but at most what all slow
// links save together.
Finding endpoint_finding(const Trace& trace, const Links& links, const LinkEndpoint& endpoint) {
  const Part& part = trace.parts[endpoint.part];
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
  Args args;
  args.set("rank", name_of(part));
  args.set("does", words(!endpoint.slow_sender    ? "finding.endpoint.receives"
                         : endpoint.slow_receiver ? "finding.endpoint.both"
                                                  : "finding.endpoint.sends"));
  say(f, "finding.endpoint", args.set("ratio", times(worst)));
  return f;
}

Finding boundary_finding(const LinkBoundary& boundary) {
  Finding f;
  f.id = "link.boundary";
  value_of(boundary.saving_share, f);
  Args args;
  args.set("stage", int64_t{boundary.stage}).set("other", int64_t{boundary.other_stage});
  say(f, "finding.boundary", args.set("slow", grouped(boundary.slow)).set("links", grouped(boundary.links)));
  return f;
}

Finding many_finding(const Links& links, int64_t slow) {
  Finding f;
  f.id = "link.many";
  value_of(links.saving_share, f);
  say(f, "finding.links", Args().set("slow", grouped(slow)));
  return f;
}

}  // namespace

std::vector<Finding> link_findings(const Trace& trace, const Links& links) {
  std::vector<Finding> findings;
  for (const LinkEndpoint& endpoint : links.endpoints)
    if (endpoint.slow_sender || endpoint.slow_receiver) findings.push_back(endpoint_finding(trace, links, endpoint));
  for (const LinkEdge& edge : links.edges) {
    if (edge.reading != LinkReading::kCell) continue;
    // Both directions are one finding where the slow direction is unknown.
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
              std::minmax({trace.parts[edge.from_part].stage, trace.parts[edge.to_part].stage});
          return edge.reading == LinkReading::kBoundary && stages == std::pair(boundary.stage, boundary.other_stage);
        }))
      findings.push_back(boundary_finding(boundary));
  std::erase_if(findings, [](const Finding& f) { return !(f.weight >= kMinLinkWorth); });
  if (findings.empty() && links.saving_share >= kMinLinkWorth)
    findings.push_back(
        many_finding(links, std::count_if(links.edges.begin(), links.edges.end(),
                                          [](const LinkEdge& edge) { return edge.reading == LinkReading::kCheap; })));
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
  return findings;
}

}  // namespace stageline
