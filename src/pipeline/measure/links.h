// The times of messages on every link between two ranks, and links that are slower than others of their kind.
//
//   send     ▐▐▐▐▐▐▐▐▐▐▐▐▐       transfer = end − max(start of send, start of receive), after alignment: a receive
//   receive      ▐▐▐▐▐▐▐▐▐       that is posted early waits, and so does a send whose receiver is late
//                └ transfer ┘
//
// Definitions: docs/analyses/links.md.
#pragma once

#include "pipeline/measure/link_transfers.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

enum class LinkReading : uint8_t {
  kFine,
  kSometimes,  // slow in some steps only
  kCheap,      // slow in at least kSlowLinkSteps of the steps, but worth less than 1 % of the step
  kCell,       // only this link is slow
  kRow,        // all links from its sender are slow
  kColumn,     // all links to its receiver are slow
  kBoundary,   // all links between these two stages are slow, in every replica
  kAlone,      // no other link of its kind to compare with
  kNegative,   // its transfer is below 0: clocks differ, or cells go on after their send
};
std::string_view link_reading_name(LinkReading reading);  // "fine", …, "slow link", "slow sender", "slow receiver", …

inline constexpr double kSlowLinkRatio = 1.2;      // minimum ratio of a slow link to the median of its class
inline constexpr double kSlowLinkSteps = 2.0 / 3;  // share of the steps in which a link must be slow to count as slow
inline constexpr double kMinLinkWorth = 0.01;      // minimum saving of a slow link, as a share of the mean step

// Edges of one direction (activations forward, gradients backward), between ranks of one machine or of two.
struct LinkClass {
  bool forward = true;
  int32_t hosts = -1;  // 1: same machine, 0: two machines, −1: unknown
  int64_t edges = 0, messages = 0;
  double median_ns = 0;  // usual_link_ns() of its edges' medians
};

struct LinkEdge {
  int32_t from_part = 0, to_part = 0;
  bool forward = true;
  size_t link_class = 0;  // into Links::classes
  int64_t messages = 0, steps = 0, slow_steps = 0;
  double median_ns = 0, p95_ns = 0;  // over its transfers
  double ratio = 1;                  // to its class; without direction_known, both ways together to the classes of both
  double both_ns = 0;                // both ways: its median plus that of the way back; NaN: no way back
  // False if the clocks of its ends were aligned by the messages between them and sends do not end together with their
  // receives. Then a longer time one way looks like an offset between the clocks.
  bool direction_known = true;
  double bytes = 0;        // median over messages; NaN: unknown
  double bytes_per_s = 0;  // median over messages; NaN: unknown
  // The time that the mean step saves with its messages at the class median; 0: not slow.
  double saving_ns = 0, saving_share = 0;
  LinkReading reading = LinkReading::kFine;
};

struct LinkEndpoint {  // one rank
  int32_t part = 0;
  int64_t sends = 0, slow_sends = 0, send_peers = 0;  // numbers of edges and of peers
  int64_t receives = 0, slow_receives = 0, receive_peers = 0;
  bool slow_sender = false, slow_receiver = false;  // all its edges are slow, and it has at least two peers
};

// All links between two neighbouring stages, over all replicas.
struct LinkBoundary {
  int32_t stage = 0, other_stage = 0;  // ascending
  int64_t links = 0, slow = 0;
  double saving_ns = 0, saving_share = 0;
};

struct Links {
  LinkEvidence evidence = LinkEvidence::kNone;
  double step_ns = 0;  // mean step of the replay of what was recorded
  std::vector<LinkClass> classes;
  std::vector<LinkEdge> edges;           // ordered by rank of the sender, rank of the receiver, direction
  std::vector<LinkEndpoint> endpoints;   // for each part
  std::vector<LinkBoundary> boundaries;  // those of which all links of one direction are slow, in at least two replicas
  double saving_ns = 0, saving_share = 0;  // with all slow links at the median of their class together
};

// Returns the usual time of a link from the medians of links of one kind: their lower median. If that median belongs to
// a group far slower than the fastest links, returns the lower median of the fast ones instead. So two links of three
// may be slow:
//
//     0.2  3.2  3.3 ms     0.2, and not 3.2
//
// The medians are sorted; the one at `without` does not count. Returns 0 where none is left. O(n).
double usual_link_ns(const std::vector<double>& sorted, size_t without = SIZE_MAX);
// A jump by this factor between two sorted medians separates two kinds of links.
inline constexpr double kFarSlower = 2;

// `graph` and `sums` belong to the same trace. O(cells log cells), and a replay for each of at most kMaxPricedLinks
// slow links.
inline constexpr size_t kMaxPricedLinks = 64;
Links find_links(const Trace& trace, const StepGraph& graph, const PipelineSums& sums);

}  // namespace stageline
