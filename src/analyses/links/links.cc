// How long messages take on every link, and which links are slow. Definitions: docs/analyses/links.md.
#include "pipeline/measure/links.h"

#include "analyses/analysis.h"
#include "analyses/links/common_ends.h"
#include "analyses/links/problems.h"
#include "diagnosis/causes/cause_findings.h"
#include "diagnosis/causes/cause_kind.h"
#include "diagnosis/causes/causes.h"
#include "facts/pipeline_facts.h"
#include "pipeline/replay/theory.h"

namespace stageline {
namespace {

std::string hosts_text(int32_t hosts) { return hosts == 1 ? "same" : hosts == 0 ? "two" : ""; }
std::string way_text(bool forward) { return forward ? "forward" : "backward"; }

// Whether a cause is a link that is slow, not one with single late messages.
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

std::vector<ColumnSpec> links_slow_links_columns() {
  return {
      {"id", "id", Type::kText,
       "link.slow: the finding of explain; link.endpoint, link.boundary: what its links have in common, everything of "
       "one rank or everything between two stages"},
      {"saving_share", "saving", Type::kShare,
       "Of the mean step, by a replay in which its messages take what the others do"},
      {"words", "in words", Type::kText, "What is slow"},
      {"what_to_do", "what to do", Type::kText, "Evidence and what to look at"}};
}

Table slow_table(const Trace& trace, const Links& links, const CauseList& causes, const Recognition& recognition) {
  Table table("slow-links", "Links that are slow, and what they cost", links_slow_links_columns());
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

std::vector<ColumnSpec> links_links_columns() {
  return {
      {"from_rank", "from", Type::kInteger, "Global rank of the sender: the row of the matrix"},
      {"to_rank", "to", Type::kInteger, "Global rank of the receiver: the column"},
      {"from_stage", "from stage", Type::kInteger, "Stage of the sender"},
      {"to_stage", "to stage", Type::kInteger, "Stage of the receiver"},
      {"dp", "dp", Type::kInteger, "Data-parallel replica of the sender"},
      {"direction", "direction", Type::kText, "forward: activations; backward: gradients"},
      {"hosts", "hosts", Type::kText, "same: one machine; two: between machines; empty: unknown"},
      {"messages", "messages", Type::kInteger, "Messages compared; of gaps those that the receiver waited for"},
      {"steps", "steps", Type::kInteger, "Steps that have some"},
      {"median_ns", "transfer", Type::kDuration,
       "Median of end − max(start of send, start of receive); without recorded messages the gap between a cell and "
       "the one that waited for it"},
      {"p95_ns", "95 %", Type::kDuration, "95th percentile of the same"},
      {"class_ns", "usual", Type::kDuration, "Median over the links of this direction and kind of hosts"},
      {"ratio", "to usual", Type::kRatio,
       "Transfer to usual; where clocks were tied by these messages there and back to what is usual for both"},
      {"both_ns", "there and back", Type::kDuration,
       "Median there plus median of the way back: no offset of clocks changes it"},
      {"direction_known", "way known", Type::kInteger,
       "0: its clocks were tied by its own messages, so which way is longer cannot be told"},
      {"bytes", "bytes", Type::kReal, "Median size of a message; empty where the source does not say"},
      {"bytes_per_s", "bytes per second", Type::kReal, "Median of size ÷ transfer"},
      {"slow_steps", "slow steps", Type::kInteger, "Steps whose median is at least 1.2 × what is usual"},
      {"saving_ns", "saving", Type::kDuration, "Mean step minus the mean of a replay with its messages as usual"},
      {"saving_share", "saving", Type::kShare, "The same as a share of the mean step"},
      {"reading", "reading", Type::kText,
       "slow link (this one alone), slow sender, slow receiver (all of that rank's), slow boundary (all between "
       "two stages, in every replica), slow, worth little (no finding of explain: under 1 % of "
       "the step, or within chance), now and then (in under two thirds of the steps), fine, or nothing to compare"}};
}

Table edges_table(const Trace& trace, const Links& links) {
  Table table("links", "Links: transfer times by sender and receiver", links_links_columns());
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

std::vector<ColumnSpec> link_endpoints_columns() {
  return {{"rank", "rank", Type::kInteger, "Global rank"},
          {"sends", "sends to", Type::kInteger, "Links it sends on: its row of the matrix"},
          {"slow_sends", "slow", Type::kInteger, "Of them slow in most steps"},
          {"receives", "receives from", Type::kInteger, "Links it receives on: its column"},
          {"slow_receives", "slow", Type::kInteger, "Of them slow in most steps"},
          {"reading", "reading", Type::kText,
           "slow sender, slow receiver or both: all links to at least two peers are slow; fine; or one peer: "
           "the link and its end look the same"}};
}

Table endpoints_table(const Trace& trace, const Links& links) {
  Table table("link-endpoints", "Ranks as ends of links", link_endpoints_columns());
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

std::vector<ColumnSpec> links_link_classes_columns() {
  return {{"direction", "direction", Type::kText, "forward: activations; backward: gradients"},
          {"hosts", "hosts", Type::kText, "same: one machine; two: between machines; empty: unknown"},
          {"links", "links", Type::kInteger, "Links of the class"},
          {"messages", "messages", Type::kInteger, "Their messages"},
          {"median_ns", "usual", Type::kDuration,
           "Median of the links' medians, of an even number the lower middle one: what is usual"}};
}

Table classes_table(const Links& links) {
  Table table("link-classes", "Classes of links", links_link_classes_columns());
  for (const LinkClass& c : links.classes)
    table.add_row({way_text(c.forward), hosts_text(c.hosts), c.edges, c.messages, whole_ns(c.median_ns)});
  return table;
}

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
  if (unknown_way > 0) result.notes.add(problem::links_way_unknown, {}, unknown_way);
  result.tables.push_back(slow_table(trace, links, causes, theory.recognition));
  result.tables.push_back(edges_table(trace, links));
  result.tables.push_back(endpoints_table(trace, links));
  result.tables.push_back(classes_table(links));
  return result;
}

}  // namespace

extern const Analysis links_analysis = {
    .name = "links",
    .summary = "how long messages take between the ranks of a pipeline, and which links or ends are slow",
    .tables = {{"slow-links", "what is slow in most steps and worth 1 % of a step", links_slow_links_columns},
               {"links", "one row per sender, receiver and direction: transfer, what is usual, bandwidth, reading",
                links_links_columns},
               {"link-endpoints", "one row per rank: are all links of one end slow?", link_endpoints_columns},
               {"link-classes", "what is usual, by direction and hosts", links_link_classes_columns}},
    .run = run_links,
    .across_ranks = true};

}  // namespace stageline
