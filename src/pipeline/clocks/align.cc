#include "pipeline/clocks/align.h"

#include "pipeline/clocks/clock_graph.h"
#include "pipeline/clocks/clock_net.h"
#include "pipeline/clocks/problems.h"

namespace stageline {
namespace align {
namespace {

int64_t rounded(double ns) { return std::abs(ns) < 9e18 ? static_cast<int64_t>(std::llround(ns)) : INT64_MAX; }

// Lists numbers for people: "2, 3, 7 and 12 more".
std::string listed(const std::vector<int64_t>& numbers) {
  constexpr size_t kShown = 12;
  std::string out;
  for (size_t i = 0; i < std::min(numbers.size(), kShown); ++i) out += (i ? ", " : "") + std::to_string(numbers[i]);
  return numbers.size() > kShown ? out + " and " + grouped(numbers.size() - kShown) + " more" : out;
}

// Points were placed in time by the receivers' clocks; now that these are known, every point moves to the reference's
// time.
void correct_times(Net& net, const Solution& solution) {
  for (Edge& edge : net.edges) {
    const size_t a = edge.a, b = edge.b;
    edge.points.shift(-solution.nodes[a].offset, -solution.nodes[b].offset);
  }
}

class Report {
 public:
  Report(const Matches& matches, const Net& net, const Solution& solution, ClockAlignment& out)
      : matches_(matches), trace_(*matches.trace), net_(net), solution_(solution), out_(out) {}

  void fill() {
    find_evidence();
    out_.clocks.resize(trace_.parts.size());
    for (size_t d = 0; d < net_.domains.size(); ++d) {
      const ClockMap map = map_of(d);
      for (const size_t p : net_.domains[d].parts) {
        out_.clocks[p] = map;
        if (d == 0 && p != net_.domains[0].parts.front()) {
          out_.clocks[p].evidence = std::max(map.evidence, ClockEvidence::kSharedClock);
          for (ClockSegment& s : out_.clocks[p].segments)
            s.evidence = std::max(s.evidence, ClockEvidence::kSharedClock);
        }
        if (!tied(d)) out_.untied.push_back(p);
      }
    }
    std::ranges::sort(out_.untied);
    say();
  }

 private:
  int32_t root_domain(int32_t node) const {
    return static_cast<int32_t>(net_.domain_of_node(solution_.nodes[node].root));
  }
  // Returns true where the source says that all ranks share one clock; it then counts for ranks that nothing connects.
  bool stated_shared() const { return trace_.clock == ClockState::kShared; }
  bool tied(size_t domain) const {
    if (stated_shared()) return true;
    for (int32_t n = net_.first_node[domain]; n < net_.first_node[domain + 1]; ++n)
      if (root_domain(n) != 0) return false;
    return true;
  }

  // Finds for each node the best kind of evidence that is enough to connect it to its root.
  void find_evidence() {
    const size_t nodes = net_.node_count();
    evidence_.assign(nodes, ClockEvidence::kTrusted);
    matches_of_.assign(nodes, 0);
    std::vector<char> has_messages(nodes, 0);
    std::vector<Guess> guesses;
    const auto reach = [&](TieKind kind, ClockEvidence evidence) {
      for (const Edge& e : net_.edges)
        if (e.kind == kind && usable(e)) guesses.push_back({e.a, e.b, 0, 1});
      const std::vector<int32_t> component = components(nodes, guesses);
      for (size_t n = 0; n < nodes; ++n) {
        const size_t root = solution_.nodes[n].root;
        if (evidence_[n] != ClockEvidence::kTrusted || n == root || component[n] != component[root]) continue;
        evidence_[n] = evidence == ClockEvidence::kCollectives && has_messages[n] ? ClockEvidence::kMixed : evidence;
      }
    };
    for (const Edge& e : net_.edges) {
      if (!usable(e)) continue;
      out_.match_count += e.fit.match_count;
      for (const int32_t n : {e.a, e.b}) {
        matches_of_[n] += e.fit.match_count;
        if (e.kind == TieKind::kMessages) has_messages[n] = 1;
      }
    }
    reach(TieKind::kMessages, ClockEvidence::kMessages);
    reach(TieKind::kGaps, ClockEvidence::kGaps);
    reach(TieKind::kCollectives, ClockEvidence::kCollectives);
    reach(TieKind::kOperator, ClockEvidence::kOperator);
  }

  static bool usable(const Edge& e) { return !e.dropped && e.fit.possible && e.fit.two_way; }

  ClockMap map_of(size_t d) const {
    ClockMap map;
    const ClockDomain& domain = net_.domains[d];
    map.evidence = ClockEvidence::kReference;
    for (int32_t n = net_.first_node[d]; n < net_.first_node[d + 1]; ++n) {
      const size_t node = n;
      const NodeClock& clock = solution_.nodes[node];
      const size_t k = n - net_.first_node[d];
      const size_t root = root_domain(n);
      ClockSegment segment{.from_ns = k == 0 ? INT64_MIN : domain.breaks[k - 1]};
      // Coarse offsets within a component are relative to its root already, except for the root's own.
      const int64_t coarse = sum_or_limit(domain.coarse_ns, -std::max(net_.domains[root].coarse_ns, -INT64_MAX));
      segment.offset_ns = sum_or_limit(coarse, rounded(clock.offset));
      segment.origin_ns = sum_or_limit(sum_or_limit(net_.middle_ns, domain.coarse_ns), rounded(clock.offset));
      segment.drift = clock.drift;
      segment.message_count = matches_of_[node];
      segment.reference_rank = trace_.parts[net_.domains[stated_shared() ? 0 : root].parts.front()].rank;
      const double half = std::max(clock.offset_high - clock.offset, clock.offset - clock.offset_low);
      const double drift_half = std::max(clock.drift_high - clock.drift, clock.drift - clock.drift_low);
      segment.offset_half_ns = std::isfinite(half) && half < 9e18 ? rounded(std::ceil(std::max(half, 0.0))) : -1;
      segment.drift_half = std::isfinite(drift_half) ? std::max(drift_half, 0.0) : -1;
      if (node != static_cast<size_t>(clock.root)) {
        segment.evidence = evidence_[node];
        map.evidence = std::max(map.evidence, evidence_[node]);
      } else if (root == 0) {
        segment.evidence = ClockEvidence::kReference;
      } else if (stated_shared()) {
        segment.evidence = ClockEvidence::kSharedClock;
        segment.offset_half_ns = 0;
        segment.drift_half = 0;
        map.evidence = std::max(map.evidence, ClockEvidence::kSharedClock);
      }
      segment.offset_error_ns =
          std::isfinite(clock.offset_error) && clock.offset_error < 9e18 ? clock.offset_error : -1;
      segment.drift_error = std::isfinite(clock.drift_error) ? clock.drift_error : -1;
      map.segments.push_back(segment);
    }
    if (d > 0 && map.evidence == ClockEvidence::kReference) {
      // This clock is the reference for itself alone, or for ranks that nothing connects to rank 0's clock.
      map.evidence = ClockEvidence::kTrusted;
    }
    return map;
  }

  void say() const {
    Diagnostics& notes = out_.notes;
    std::set<std::string> one_way;
    for (const Edge& e : net_.edges)
      if (!e.dropped && e.fit.possible && !e.fit.two_way && e.kind != TieKind::kCollectives &&
          solution_.nodes[e.a].root != solution_.nodes[e.b].root)
        one_way.insert(name(e.a) + " and " + name(e.b));
    if (!one_way.empty()) notes.add(problem::clock_one_way, Args().set("clock", *one_way.begin()), {}, one_way.size());
    for (const Solution::Dropped& dropped : solution_.dropped) {
      const Edge& e = net_.edges[dropped.edge];
      std::string around;
      for (const size_t k : dropped.cycle)
        append_item(around, name(net_.edges[k].a) + " – " + name(net_.edges[k].b), "; ");
      Point at;
      e.bounds.upper.support(e.fit.slope, &at);
      notes.add(problem::clock_bad_match_around, Args()
                                                     .set("a", name(e.a))
                                                     .set("b", name(e.b))
                                                     .set("around", around)
                                                     .set("match", match_name_of(matches_, e, at.tag)));
    }
    if (solution_.hopeless) notes.add(problem::clock_contradicting_tie_all);
    if (!solution_.consistent) notes.add(problem::clock_rough);
    if (!out_.untied.empty()) {
      auto ranks = mapped<int64_t>(out_.untied, [&](const size_t p) { return trace_.parts[p].rank; });
      notes.add(problem::clock_untied, Args()
                                           .flag("one", ranks.size() == 1)
                                           .set("ranks", listed(ranks))
                                           .set("rank", std::to_string(trace_.parts.front().rank)));
    }
    say_aligned();
  }

  void say_aligned() const {
    std::set<ClockEvidence> by;
    int64_t ranks = 0;
    double worst = 0;
    int64_t half_ns = 0;
    for (const ClockMap& map : out_.clocks) {
      bool measured = false;
      for (const ClockSegment& s : map.segments) {
        if (!is_measured(s.evidence)) continue;
        measured = true;
        by.insert(s.evidence);
        worst = s.offset_error_ns < 0 || worst < 0 ? -1 : std::max(worst, s.offset_error_ns);
        half_ns = s.offset_half_ns < 0 || half_ns < 0 ? -1 : std::max(half_ns, s.offset_half_ns);
      }
      ranks += measured;
    }
    if (ranks == 0) return;
    out_.notes.add(problem::clock_aligned, Args()
                                               .set("ranks", grouped(ranks))
                                               .flag("one", ranks == 1)
                                               .set("evidence", evidence_list({by.begin(), by.end()}))
                                               .set("matches", grouped(out_.match_count))
                                               .set("worst", human_duration(worst))
                                               .flag("likely", !(worst < 0))
                                               .set("bound", human_duration(half_ns))
                                               .flag("bounded", !(half_ns < 0)));
  }

  std::string name(int32_t node) const { return clock_name_of(trace_, net_.domains[net_.domain_of_node(node)]); }

  const Matches& matches_;
  const Trace& trace_;
  const Net& net_;
  const Solution& solution_;
  ClockAlignment& out_;
  std::vector<ClockEvidence> evidence_;
  std::vector<int64_t> matches_of_;
};

// Returns the pairs of ranks whose messages were dropped, since they contradict each other.
PartPairs pairs_of_dropped_messages(const Matches& matches, const Net& net) {
  PartPairs pairs;
  for (const Edge& edge : net.edges)
    if (edge.dropped && edge.kind == TieKind::kMessages)
      for (const size_t t : edge.ties) pairs.insert({matches.ties[t].part_a, matches.ties[t].part_b});
  return pairs;
}

// Messages that contradict each other are matched wrongly. The order of the cells, which does not depend on them, still
// ties their ranks.
Net gather_usable(Matches& matches, const AlignRequest& request, Diagnostics& notes) {
  Diagnostics first;
  Net net = gather_net(matches, request.each_rank_alone, first);
  const PartPairs silent = pairs_of_dropped_messages(matches, net);
  if (silent.empty()) {
    notes.merge(first);
    return net;
  }
  for (const Diagnostic& note : first.items())
    if (note.name == problem::clock_contradicting_tie.name) notes.add(note);
  matches = find_matches(*matches.trace, request.by_hand, silent);
  return gather_net(matches, request.each_rank_alone, notes);
}

}  // namespace
}  // namespace align

ClockAlignment align_clocks(const Trace& trace, const AlignRequest& request) {
  using namespace align;
  ClockAlignment out;
  if (trace.parts.empty()) return out;
  Matches matches = find_matches(trace, request.by_hand);
  for (const ByHand& hand : request.by_hand) {
    const auto joins = [&](const Tie& tie) {
      const int32_t a = trace.parts[tie.part_a].rank, b = trace.parts[tie.part_b].rank;
      return tie.kind == TieKind::kOperator && a == std::min(hand.rank_a, hand.rank_b) &&
             b == std::max(hand.rank_a, hand.rank_b);
    };
    if (std::ranges::none_of(matches.ties, joins))
      out.notes.add(problem::clock_no_such_operator, Args()
                                                         .set("rank_a", std::to_string(hand.rank_a))
                                                         .set("rank_b", std::to_string(hand.rank_b))
                                                         .set("name", hand.name));
  }
  Net net = gather_usable(matches, request, out.notes);
  fit_edges(net.edges, net.drift_limit);
  std::vector<char> dropped;
  for (const Edge& edge : net.edges) dropped.push_back(edge.dropped);
  const Solution rough = solve(net.node_count(), net.edges, net.drift_limit);
  for (size_t k = 0; k < net.edges.size(); ++k) net.edges[k].dropped = dropped[k];
  correct_times(net, rough);
  fit_edges(net.edges, net.drift_limit);
  const Solution solution = solve(net.node_count(), net.edges, net.drift_limit);
  Report(matches, net, solution, out).fill();
  return out;
}

std::vector<ClockDoubt> doubt_shared_clock(const ClockAlignment& alignment) {
  constexpr int64_t kToleranceNs = 50'000;  // timestamps of one machine differ by tens of microseconds
  std::vector<ClockDoubt> doubts;
  for (size_t p = 0; p < alignment.clocks.size(); ++p)
    for (const ClockSegment& s : alignment.clocks[p].segments) {
      if (s.offset_half_ns < 0 || std::abs(s.offset_ns) <= sum_or_limit(s.offset_half_ns, kToleranceNs)) continue;
      doubts.push_back({p, s.offset_ns, s.offset_half_ns});
      break;
    }
  return doubts;
}

int32_t reference_of(const ClockMap& map) {
  if (map.segments.empty()) return -1;
  for (const ClockSegment& s : map.segments)
    if (s.reference_rank != map.segments.front().reference_rank) return -1;
  return map.segments.front().reference_rank;
}

}  // namespace stageline
