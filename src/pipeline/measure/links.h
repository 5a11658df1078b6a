// How long messages take on every link between two ranks, and which links are slower than others of their kind.
//
//   send     ▐▐▐▐▐▐▐▐▐▐▐▐▐       transfer = end − max(start of send, start of receive), after alignment: a receive
//   receive      ▐▐▐▐▐▐▐▐▐       that is posted early waits, and so does a send whose receiver is late
//                └ transfer ┘
//
// Definitions: docs/analyses/links.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/finding.h"
#include "model/pipeline_sums.h"
#include "pipeline/measure/link_transfers.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

enum class LinkReading : uint8_t {
  kFine,
  kNowAndThen,  // slow in some steps
  kCheap,       // slow in most, but worth less than 1 % of the step
  kCell,        // this link alone
  kRow,         // everything that its sender sends
  kColumn,      // everything that its receiver receives
  kBoundary,    // all links between these two stages, in every replica
  kAlone,       // no other link of its kind to compare with
};
std::string_view link_reading_name(LinkReading reading);  // "fine", …, "slow link", "slow sender", "slow receiver", …

inline constexpr double kSlowLinkRatio = 1.2;      // to the median of its class
inline constexpr double kSlowLinkSteps = 2.0 / 3;  // of the steps, to be persistent
inline constexpr double kLeastLinkWorth = 0.01;    // of the mean step

// Edges of one direction (activations forward, gradients backward), between ranks of one machine or of two.
struct LinkClass {
  bool forward = true;
  int32_t hosts = -1;  // 1: same machine, 0: two, −1: unknown
  int64_t edges = 0, messages = 0;
  double median_ns = 0;  // of the edges' medians; of an even number the lower middle one
};

struct LinkEdge {
  int32_t from_part = 0, to_part = 0;
  bool forward = true;
  size_t link_class = 0;  // into Links::classes
  int64_t messages = 0, steps = 0, slow_steps = 0;
  double median_ns = 0, p95_ns = 0;  // of its transfers
  double ratio = 1;                  // to the class; of !direction_known there and back to the classes of both
  double both_ns = 0;                // there and back: its median and that of the way back; NaN: no way back
  // False where the clocks of its ends were tied by what passes between them, and sends do not end with their receives:
  // what one way is longer than the other cannot be told from an offset of the clocks.
  bool direction_known = true;
  double bytes = 0;                        // median of a message; NaN: unknown
  double bytes_per_s = 0;                  // median over messages; NaN
  double saving_ns = 0, saving_share = 0;  // of the mean step, its messages at the class median; 0: not slow
  LinkReading reading = LinkReading::kFine;
};

struct LinkEndpoint {  // one rank
  int32_t part = 0;
  int64_t sends = 0, slow_sends = 0, send_peers = 0;  // edges
  int64_t receives = 0, slow_receives = 0, receive_peers = 0;
  bool slow_sender = false, slow_receiver = false;  // all of at least two peers
};

// All links between two neighbouring stages, over replicas; where they are slow everywhere.
struct LinkBoundary {
  int32_t stage = 0, other_stage = 0;  // ascending
  int64_t links = 0, slow = 0;
  double saving_ns = 0, saving_share = 0;
};

struct Links {
  LinkEvidence evidence = LinkEvidence::kNone;
  double step_ns = 0;  // mean of the replay of what was recorded
  std::vector<LinkClass> classes;
  std::vector<LinkEdge> edges;             // by rank of the sender, receiver, direction
  std::vector<LinkEndpoint> endpoints;     // by part
  std::vector<LinkBoundary> boundaries;    // all of whose links of one direction are slow, in two replicas or more
  double saving_ns = 0, saving_share = 0;  // all slow links at their class's median together
};

// What a link usually takes, by the medians of links of one kind: the lower middle one, or, where that is of links that
// are all far slower than the quickest ones, the lower middle one of the quick ones. Two links of three may be slow:
//
//     0.2  3.2  3.3 ms     0.2, and not 3.2
//
// 0 of none. O(n log n).
double usual_link_ns(std::vector<double> medians);
inline constexpr double kFarSlower = 2;  // so much slower is another kind of links

// `graph`: of the same trace. O(cells log cells), and a replay for each of at most kMostPricedLinks slow links.
inline constexpr size_t kMostPricedLinks = 64;
Links find_links(const Trace& trace, const StepGraph& graph, const PipelineSums& sums);

// One finding for every slow endpoint, boundary of stages, and slow link beside those; ids "link.endpoint",
// "link.boundary", "link.slow", and "link.many" where links cost something only together.
std::vector<Finding> link_findings(const Trace& trace, const Links& links);

}  // namespace stageline
