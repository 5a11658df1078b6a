// Finds how long messages take on every link, and which links are slow. Definitions: docs/analyses/links.md.

#include "analyses/analysis.h"
#include "analyses/links/common_ends.h"
#include "analyses/links/problems.h"
#include "diagnosis/causes/causes.h"
#include "diagnosis/causes/findings.h"
#include "facts/pipeline_facts.h"
#include "pipeline/replay/theory.h"

namespace stageline {
namespace {

std::string hosts_text(int32_t hosts) { return hosts == 1 ? "same" : hosts == 0 ? "two" : ""; }
std::string way_text(bool forward) { return forward ? "forward" : "backward"; }

// Returns true when a cause is a slow link, not one with single late messages.
bool is_slow_link(const Cause& cause) {
  return cause.place().stage != kUnknown && cause.place().kind == PlaceKind::kLink && !cause.kind->of_events;
}

// Returns true when a link is one of those that a cause is about.
bool covers(const Trace& trace, const Cause& cause, const LinkEdge& edge) {
  const Part &from = trace.parts[edge.from_part], &to = trace.parts[edge.to_part];
  const Place& link = cause.place();
  if (!is_slow_link(cause) || (link.replica != kUnknown && link.replica != from.dp)) return false;
  return (from.stage == link.from_stage && to.stage == link.stage) ||
         (link.both_ways && from.stage == link.stage && to.stage == link.from_stage);
}

// Makes this table and `explain` name the same links. A link whose loss the replay of `explain` prices is slow here
// too, and has that price when it is a single link. A slow link without a price is worth little.
void read_as_causes(const Trace& trace, const CauseList& causes, Links& links) {
  std::vector<int64_t> edges_of(causes.causes.size(), 0);
  std::vector<size_t> cause_of(links.edges.size(), SIZE_MAX);
  for (size_t e = 0; e < links.edges.size(); ++e)
    for (size_t c = 0; c < causes.causes.size() && cause_of[e] == SIZE_MAX; ++c)
      if (covers(trace, causes.causes[c], links.edges[e])) cause_of[e] = c, ++edges_of[c];
  for (size_t e = 0; e < links.edges.size(); ++e) {
    LinkEdge& edge = links.edges[e];
    const bool slow = edge.reading == LinkReading::kCell || edge.reading == LinkReading::kRow ||
                      edge.reading == LinkReading::kColumn || edge.reading == LinkReading::kBoundary;
    if (cause_of[e] == SIZE_MAX) {
      if (slow) edge.reading = LinkReading::kCheap;
      continue;
    }
    const Cause& cause = causes.causes[cause_of[e]];
    const bool alone = edges_of[cause_of[e]] == 1;
    if (!slow && (alone || edge.ratio >= kSlowLinkRatio))
      edge.reading = alone ? LinkReading::kCell : LinkReading::kBoundary;
    if (!alone) continue;
    edge.saving_ns = cause.price.lost_ns;
    edge.saving_share = causes.step_ns > 0 ? cause.price.lost_ns / causes.step_ns : 0;
  }
}

Table slow_table(const Trace& trace, const Links& links, const CauseList& causes, const Recognition& recognition) {
  Table table(declared_table("links/slow-links"));
  bool slow = false;
  for (const Cause& cause : causes.causes) {
    if (!is_slow_link(cause)) continue;
    slow = true;
    const Finding f = cause_finding(trace, causes, cause, recognition);
    table.add_row({f.id, f.price.saving_ns / causes.step_ns, f.title, f.detail});
  }
  if (!slow) return table;
  for (const Finding& f : common_ends(trace, links)) table.add_row({f.id, f.weight, f.title, f.detail});
  return table;
}

Table edges_table(const Trace& trace, const Links& links) {
  Table table(declared_table("links/links"));
  for (const LinkEdge& e : links.edges) {
    const Part &from = trace.parts[e.from_part], &to = trace.parts[e.to_part];
    const LinkClass& c = links.classes[e.link_class];
    table.add_row({int64_t{from.rank},
                   int64_t{to.rank},
                   known_integer(from.stage),
                   known_integer(to.stage),
                   known_integer(from.dp),
                   way_text(e.forward),
                   hosts_text(c.hosts),
                   e.messages,
                   e.steps,
                   whole_ns(e.median_ns),
                   whole_ns(e.p95_ns),
                   whole_ns(c.median_ns),
                   e.ratio,
                   whole_ns(e.both_ns),
                   int64_t{e.direction_known},
                   e.bytes,
                   e.bytes_per_s,
                   e.slow_steps,
                   whole_ns(e.saving_ns),
                   e.saving_share,
                   std::string(link_reading_name(e.reading))});
  }
  return table;
}

Table endpoints_table(const Trace& trace, const Links& links) {
  Table table(declared_table("links/link-endpoints"));
  for (const LinkEndpoint& e : links.endpoints) {
    const std::string reading = e.slow_sender && e.slow_receiver          ? "slow sender and receiver"
                                : e.slow_sender                           ? "slow sender"
                                : e.slow_receiver                         ? "slow receiver"
                                : e.slow_sends + e.slow_receives == 0     ? "fine"
                                : e.send_peers < 2 && e.receive_peers < 2 ? "one peer"
                                                                          : "fine but for single links";
    table.add_row({int64_t{trace.parts[e.part].rank}, e.sends, e.slow_sends, e.receives, e.slow_receives, reading});
  }
  return table;
}

Table classes_table(const Links& links) {
  Table table(declared_table("links/link-classes"));
  for (const LinkClass& c : links.classes)
    table.add_row({way_text(c.forward), hosts_text(c.hosts), c.edges, c.messages, whole_ns(c.median_ns)});
  return table;
}

}  // namespace

Result<AnalysisResult> run_links(const AnalysisInput& input) {
  AnalysisResult result;
  const Trace& trace = *input.trace;
  const RunGraph& made = graph_of(input.run(), LaunchRule::kInOrder);
  result.notes.merge(made.notes);
  if (!made.graph) return *made.error;
  Links links = find_links(trace, *made.graph, sums_of(input.run()));
  const TheoryRun& theory = theory_of(input.run());
  const CauseList& causes = causes_of(input.run());
  read_as_causes(trace, causes, links);
  if (links.evidence == LinkEvidence::kNone) result.notes.add(problem::links_none);
  if (links.evidence == LinkEvidence::kGaps) result.notes.add(problem::links_gaps);
  int64_t unknown_way = 0;
  for (const LinkEdge& edge : links.edges) unknown_way += edge.direction_known ? 0 : 1;
  result.notes.add(problem::links_way_unknown, {}, unknown_way);
  return result.with(slow_table(trace, links, causes, theory.recognition), edges_table(trace, links),
                     endpoints_table(trace, links), classes_table(links));
}

}  // namespace stageline
