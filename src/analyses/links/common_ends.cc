#include "analyses/links/common_ends.h"

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
  args.set("does", words(!endpoint.slow_sender    ? "link.endpoint.receives"
                         : endpoint.slow_receiver ? "link.endpoint.both"
                                                  : "link.endpoint.sends"));
  say(f, "link.endpoint", args.set("ratio", times(worst)));
  return f;
}

Finding boundary_finding(const LinkBoundary& boundary) {
  Finding f;
  f.id = "link.boundary";
  value_of(boundary.saving_share, f);
  Args args;
  args.set("stage", int64_t{boundary.stage}).set("other", int64_t{boundary.other_stage});
  say(f, "link.boundary", args.set("slow", grouped(boundary.slow)).set("links", grouped(boundary.links)));
  return f;
}

}  // namespace

std::vector<Finding> common_ends(const Trace& trace, const Links& links) {
  std::vector<Finding> ends;
  for (const LinkEndpoint& endpoint : links.endpoints)
    if (endpoint.slow_sender || endpoint.slow_receiver) ends.push_back(endpoint_finding(trace, links, endpoint));
  for (const LinkBoundary& boundary : links.boundaries)
    if (std::ranges::any_of(links.edges, [&](const LinkEdge& edge) {
          const std::pair<int32_t, int32_t> stages =
              std::minmax({trace.parts[edge.from_part].stage, trace.parts[edge.to_part].stage});
          return edge.reading == LinkReading::kBoundary && stages == std::pair(boundary.stage, boundary.other_stage);
        }))
      ends.push_back(boundary_finding(boundary));
  std::erase_if(ends, [](const Finding& f) { return !(f.weight >= kMinLinkWorth); });
  sort_stably(ends, std::greater(), &Finding::weight);
  return ends;
}

}  // namespace stageline
