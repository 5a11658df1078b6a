#include "base/parallel.h"
#include "model/intervals.h"
#include "pipeline/clocks/clock_net.h"
#include "pipeline/clocks/problems.h"

namespace stageline::align {
namespace {

constexpr int kMaxJumps = 64;  // limit for the number of clock settings found in all
// Share of a tie's matches; when more are bad, it is not known which are the good ones.
constexpr double kMaxBadShare = 0.05;
constexpr int64_t kFewBad = 2;         // this many matches of a short run may be bad: two labels that changed places, …
constexpr int64_t kFewBadOf = 16;      // … but only when the run has at least this many matches
constexpr double kMaxOddShare = 0.25;  // share of a collective's ties that may contradict themselves

Span span_of(const Trace& trace, const std::vector<StepCells>& steps, const Part& part) {
  Span span;
  for (const StepCells& step : steps)
    for (const size_t i : {step.begin, step.end - 1}) span.add(trace.cells.start_ns[i], trace.cells.end_ns[i]);
  if (span.any()) return span;
  for (const Lane& lane : part.lanes)
    if (lane.begin < lane.end) span.add(part.slices.start_ns[lane.begin], part.slices.end_ns(lane.end - 1));
  return span;
}

void make_domains(const Trace& trace, bool each_rank_alone, Net& net) {
  bool machines = trace.machine_count() > 1 && trace.clock != ClockState::kPerRank && !each_rank_alone;
  for (const Part& part : trace.parts) machines = machines && part.machine != kUnknown;
  const bool shared = trace.clock == ClockState::kShared && !each_rank_alone;
  std::map<int32_t, size_t> of_machine;
  for (uint32_t p = 0; p < trace.parts.size(); ++p) {
    const int32_t key = shared ? 0 : machines ? trace.parts[p].machine : static_cast<int32_t>(p);
    const auto [it, fresh] = of_machine.try_emplace(key, net.domains.size());
    if (fresh) net.domains.emplace_back();
    net.domains[it->second].parts.push_back(p);
    net.domain_of_part.push_back(it->second);
  }
}

// Sources that restart every rank's clock at every step: a segment a step, from the step's first cell on.
void cut_at_steps(const Matches& matches, Net& net) {
  const Trace& trace = *matches.trace;
  if (!trace.steps_laid_end_to_end || trace.clock != ClockState::kPerRank) return;
  net.drift_limit = 0;
  for (ClockDomain& domain : net.domains)
    for (const size_t p : domain.parts) {
      const auto& steps = matches.steps_of_part[p];
      for (size_t k = 1; k < steps.size(); ++k) domain.breaks.push_back(trace.cells.start_ns[steps[k].begin]);
      std::ranges::sort(domain.breaks);
    }
}

// Gives each clock a rough offset along a tree of ties, messages first. All later differences are much smaller.
void set_coarse(const Matches& matches, Net& net) {
  // For each domain: (other domain, tie).
  std::vector<std::vector<std::pair<size_t, size_t>>> ties_of(net.domains.size());
  for (size_t k = 0; k < matches.ties.size(); ++k) {
    const size_t a = net.domain_of_part[matches.ties[k].part_a], b = net.domain_of_part[matches.ties[k].part_b];
    if (a == b) continue;
    ties_of[a].emplace_back(b, k);
    ties_of[b].emplace_back(a, k);
  }
  std::vector<char> known(net.domains.size(), 0);
  std::vector<size_t> queue;
  for (size_t root = 0; root < net.domains.size(); ++root) {
    if (known[root]) continue;
    known[root] = 1;
    queue.push_back(root);
    for (size_t at = queue.size() - 1; at < queue.size(); ++at) {
      const size_t from = queue[at];
      for (const auto& [to, k] : ties_of[from]) {
        int64_t difference = 0;
        if (known[to] || !rough_difference(matches, matches.ties[k], difference)) continue;
        const bool forward = net.domain_of_part[matches.ties[k].part_a] == from;
        if (!forward) difference = difference == INT64_MIN ? INT64_MAX : -difference;
        net.domains[to].coarse_ns = sum_or_limit(net.domains[from].coarse_ns, difference);
        known[to] = 1;
        queue.push_back(to);
      }
    }
  }
}

void set_middle(const Matches& matches, Net& net) {
  Span whole;
  for (const ClockDomain& domain : net.domains)
    for (const size_t p : domain.parts) {
      const Span span = span_of(*matches.trace, matches.steps_of_part[p], matches.trace->parts[p]);
      if (!span.any()) continue;
      const int64_t back = domain.coarse_ns == INT64_MIN ? INT64_MAX : -domain.coarse_ns;
      whole.add(sum_or_limit(span.start_ns, back), sum_or_limit(span.end_ns, back));
    }
  if (whole.any()) net.middle_ns = whole.start_ns / 2 + whole.end_ns / 2;
}

class Gatherer {
 public:
  Gatherer(const Matches& matches, Net& net, Diagnostics& notes) : matches_(matches), net_(net), notes_(notes) {}

  void gather_all() {
    number_nodes();
    std::vector<std::optional<Gathered>> gathered(matches_.ties.size());
    parallel_for(matches_.ties.size(), [&](size_t k) {
      if (crosses(matches_.ties[k])) gathered[k].emplace(gather(matches_, matches_.ties[k], frame_of(k)));
    });
    net_.edges.clear();
    std::map<std::tuple<int32_t, int32_t, TieKind, int32_t>, size_t> known;
    unmatched_ = {};
    for (size_t k = 0; k < gathered.size(); ++k) {
      if (!gathered[k]) continue;
      const Tie& tie = matches_.ties[k];
      unmatched_.messages += gathered[k]->unmatched.messages;
      unmatched_.first_cell = std::min(unmatched_.first_cell, gathered[k]->unmatched.first_cell);
      const auto [a, b] = domains_of(k);
      for (TiePoints& points : gathered[k]->points) {
        const int32_t node_a = net_.first_node[a] + points.segment_a, node_b = net_.first_node[b] + points.segment_b;
        const auto [it, fresh] = known.try_emplace({node_a, node_b, tie.kind, tie.name}, net_.edges.size());
        if (fresh) {
          net_.edges.push_back(
              {.a = node_a, .b = node_b, .kind = tie.kind, .name = tie.name, .points = std::move(points)});
        } else {
          net_.edges[it->second].points.merge(points);
        }
        net_.edges[it->second].ties.push_back(k);
      }
    }
    for (Edge& edge : net_.edges) {
      edge.points.causal.finish();
      edge.points.rendezvous.finish();
    }
  }

  // Allows larger drifts where clocks are worse than quartz: where a tie's bounds allow a steep line and no usual one.
  void widen_drifts() {
    if (net_.drift_limit == 0) return;
    // Collectives that do not span the replicas contradict themselves at any drift; a steep line between a few of their
    // bounds says nothing about clocks.
    const std::vector<char> odd = odd_collectives(kWildDrift);
    std::vector<char> wild(net_.edges.size(), 0);
    parallel_for(net_.edges.size(), [&](size_t k) {
      const Edge& edge = net_.edges[k];
      if (edge.kind == TieKind::kOperator || (edge.name >= 0 && odd[edge.name])) return;
      wild[k] = !admissible_slopes(edge.points.causal, kMaxDrift).possible &&
                admissible_slopes(edge.points.causal, kWildDrift).possible;
    });
    const auto first = std::ranges::find(wild, 1);
    if (first == wild.end()) return;
    net_.drift_limit = kWildDrift;
    const Edge& edge = net_.edges[first - wild.begin()];
    notes_.add(problem::clock_wild_drift, Args().set("a", name_of(edge.a)).set("b", name_of(edge.b)), {},
               std::ranges::count(wild, 1));
  }

  // Finds clocks that were set during the run, one after the other, the plainest jump first.
  void cut_at_jumps() {
    if (net_.drift_limit == 0) return;
    for (int round = 0; round < kMaxJumps; ++round) {
      std::vector<std::vector<ClockJump>> jumps(net_.edges.size());
      parallel_for(net_.edges.size(), [&](size_t k) {
        const Edge& edge = net_.edges[k];
        if (edge.kind == TieKind::kCollectives) return;
        // A jump that is small compared with the room that causality leaves may be the network's doing.
        const Slopes slopes = admissible_slopes(edge.points.causal, net_.drift_limit);
        const double room = slopes.possible ? edge.points.causal.room(slopes.roomiest) : 0;
        jumps[k] = find_jumps(edge.points, edge.kind, net_.drift_limit);
        std::erase_if(jumps[k], [&](const ClockJump& jump) { return std::abs(jump.jump) < room / 2; });
      });
      size_t plainest = 0;
      const ClockJump* jump = nullptr;
      for (size_t k = 0; k < jumps.size(); ++k)
        for (const ClockJump& one : jumps[k]) {
          if (jump && std::abs(one.jump) <= std::abs(jump->jump)) continue;
          plainest = k;
          jump = &one;
        }
      if (!jump || !cut(plainest, *jump, jumps)) return;
      gather_all();
    }
  }

  // Drops collectives of names that no clocks can explain, since they span something else than the replicas of a stage.
  void drop_odd_collectives() {
    const std::vector<char> odd = odd_collectives(net_.drift_limit);
    std::string names;
    int64_t dropped = 0;
    for (uint32_t n = 0; n < odd.size(); ++n) {
      if (!odd[n]) continue;
      append_item(names, matches_.names[n]);
      ++dropped;
      for (Edge& edge : net_.edges)
        if (edge.name == static_cast<int32_t>(n)) edge.dropped = true;
    }
    notes_.add(problem::clock_collective_not_shared, Args().set("names", names), {}, dropped);
  }

  // Drops matches whose bounds most matches of their own tie contradict.
  void drop_bad_matches() {
    std::vector<int64_t> bad(net_.edges.size(), 0), all(net_.edges.size(), 0);
    std::vector<uint32_t> first(net_.edges.size(), UINT32_MAX);
    parallel_for(net_.edges.size(), [&](size_t k) {
      Edge& edge = net_.edges[k];
      if (edge.dropped || admissible_slopes(edge.points.causal, net_.drift_limit).possible) return;
      all[k] = edge.points.from_a.count() + edge.points.from_b.count();
      std::optional<Line> line = robust_line(edge.points, edge.kind, net_.drift_limit);
      bad[k] = all[k];
      if (!line) return;
      line = min_contradicted(edge.points, *line, net_.drift_limit);
      for (const double slack : {3 * line->scatter, 0.0}) {
        TiePoints kept;
        int64_t trimmed = 0;
        for (const size_t t : edge.ties) {
          Frame frame = frame_of(t);
          frame.trimmed = true;
          frame.intercept = line->offset;
          frame.slope = line->slope;
          frame.slack = slack;
          const auto [a, b] = domains_of(t);
          frame.only_a = edge.a - net_.first_node[a];
          frame.only_b = edge.b - net_.first_node[b];
          Gathered again = gather(matches_, matches_.ties[t], frame);
          trimmed += again.trimmed_count;
          first[k] = std::min(first[k], again.first_trimmed);
          for (const TiePoints& points : again.points) kept.merge(points);
        }
        kept.causal.finish();
        kept.rendezvous.finish();
        if (!admissible_slopes(kept.causal, net_.drift_limit).possible) continue;
        bad[k] = trimmed;
        edge.points = std::move(kept);
        return;
      }
    });
    for (size_t k = 0; k < net_.edges.size(); ++k) {
      if (all[k] == 0) continue;
      Edge& edge = net_.edges[k];
      const bool few = bad[k] <= kFewBad && all[k] >= kFewBadOf;
      const bool hopeless = !few && bad[k] > kMaxBadShare * all[k];
      edge.dropped = hopeless;
      if (hopeless) {
        notes_.add(problem::clock_contradicting_tie, Args()
                                                         .set("a", name_of(edge.a))
                                                         .set("b", name_of(edge.b))
                                                         .set("bad", grouped(bad[k]))
                                                         .set("all", grouped(all[k]))
                                                         .flag("cells", edge.kind == TieKind::kGaps));
      } else {
        notes_.add(problem::clock_bad_match,
                   Args()
                       .set("a", name_of(edge.a))
                       .set("b", name_of(edge.b))
                       .set("match", first[k] == UINT32_MAX ? "" : match_name_of(matches_, edge, first[k])),
                   {}, std::max<int64_t>(bad[k], 1));
      }
    }
  }

  void say_unmatched() { notes_.add(problem::clock_unmatched, {}, unmatched_.messages); }

 private:
  bool crosses(const Tie& tie) const { return net_.domain_of_part[tie.part_a] != net_.domain_of_part[tie.part_b]; }

  // Returns for each name whether more than a few of its ties contradict themselves.
  std::vector<char> odd_collectives(double drift_limit) const {
    std::vector<int64_t> ties(matches_.names.size(), 0), bad(matches_.names.size(), 0);
    std::vector<char> possible(net_.edges.size(), 1), odd(matches_.names.size(), 0);
    parallel_for(net_.edges.size(), [&](size_t k) {
      if (net_.edges[k].kind == TieKind::kCollectives)
        possible[k] = admissible_slopes(net_.edges[k].points.causal, drift_limit).possible;
    });
    for (size_t k = 0; k < net_.edges.size(); ++k) {
      if (net_.edges[k].name < 0) continue;
      ++ties[net_.edges[k].name];
      bad[net_.edges[k].name] += !possible[k];
    }
    for (size_t n = 0; n < odd.size(); ++n) odd[n] = bad[n] > kMaxOddShare * ties[n];
    return odd;
  }

  // Returns the two clocks of a tie, the lower one first.
  std::pair<size_t, size_t> domains_of(size_t tie) const {
    const size_t a = net_.domain_of_part[matches_.ties[tie].part_a], b = net_.domain_of_part[matches_.ties[tie].part_b];
    return {std::min(a, b), std::max(a, b)};
  }

  Frame frame_of(size_t tie) const {
    const auto [a, b] = domains_of(tie);
    return Frame{.a = &net_.domains[a],
                 .b = &net_.domains[b],
                 .swapped = net_.domain_of_part[matches_.ties[tie].part_a] != a,
                 .middle_ns = net_.middle_ns};
  }

  void number_nodes() {
    net_.first_node.assign(1, 0);
    for (const ClockDomain& domain : net_.domains)
      net_.first_node.push_back(net_.first_node.back() + static_cast<int32_t>(domain.breaks.size()) + 1);
  }

  std::string name_of(int32_t node) const {
    return clock_name_of(*matches_.trace, net_.domains[net_.domain_of_node(node)]);
  }

  // Decides which of the two clocks jumped, namely the one whose other ties jump as well, and cuts it there.
  bool cut(size_t k, const ClockJump& jump, const std::vector<std::vector<ClockJump>>& jumps) {
    const Edge& edge = net_.edges[k];
    const auto share = [&](int32_t node) {
      double touching = 0, jumping = 0;
      for (size_t e = 0; e < net_.edges.size(); ++e) {
        const Edge& other = net_.edges[e];
        if ((other.a != node && other.b != node) || other.kind == TieKind::kCollectives) continue;
        ++touching;
        jumping += std::ranges::any_of(
            jumps[e], [&](const ClockJump& own) { return own.from_t <= jump.to_t && own.to_t >= jump.from_t; });
      }
      return std::pair(jumping / std::max(1.0, touching), jumping);
    };
    const bool is_a = share(edge.a) > share(edge.b);
    const size_t domain = net_.domain_of_node(is_a ? edge.a : edge.b);
    TiePoints window;
    for (const size_t t : edge.ties) {
      Frame frame = frame_of(t);
      const auto [a, b] = domains_of(t);
      frame.only_a = edge.a - net_.first_node[a];
      frame.only_b = edge.b - net_.first_node[b];
      frame.from_t = jump.from_t;
      frame.to_t = jump.to_t;
      for (const TiePoints& points : gather(matches_, matches_.ties[t], frame).points) window.merge(points);
    }
    const double t = refine_jump(window, jump);
    ClockDomain& cut = net_.domains[domain];
    const int64_t at = sum_or_limit(sum_or_limit(net_.middle_ns, cut.coarse_ns), std::llround(t));
    if (std::ranges::find(cut.breaks, at) != cut.breaks.end()) return false;
    const double by = is_a ? -jump.jump : jump.jump;
    notes_.add(problem::clock_step, Args()
                                        .set("clock", clock_name_of(*matches_.trace, cut))
                                        .flag("back", by < 0)
                                        .set("by", human_duration(std::abs(by)))
                                        .set("after", human_duration(at - static_cast<double>(first_stamp(cut)))));
    cut.breaks.push_back(at);
    std::ranges::sort(cut.breaks);
    return true;
  }

  int64_t first_stamp(const ClockDomain& domain) const {
    return min_over<int64_t>(domain.parts, [&](const size_t p) {
      return span_of(*matches_.trace, matches_.steps_of_part[p], matches_.trace->parts[p]).start_ns;
    });
  }

  const Matches& matches_;
  Net& net_;
  Diagnostics& notes_;
  Unmatched unmatched_;
};

}  // namespace

size_t Net::domain_of_node(int32_t node) const {
  return static_cast<size_t>(std::ranges::upper_bound(first_node, node) - first_node.begin()) - 1;
}

Net gather_net(const Matches& matches, bool each_rank_alone, Diagnostics& notes) {
  Net net;
  make_domains(*matches.trace, each_rank_alone, net);
  cut_at_steps(matches, net);
  set_coarse(matches, net);
  set_middle(matches, net);
  parallel_for(net.domains.size(),
               [&](size_t d) { net.domains[d].grain_ns = stamp_grain_of(matches, net.domains[d]); });
  Gatherer gatherer(matches, net, notes);
  gatherer.gather_all();
  gatherer.widen_drifts();
  gatherer.cut_at_jumps();
  gatherer.drop_odd_collectives();
  gatherer.drop_bad_matches();
  gatherer.say_unmatched();
  return net;
}

std::string clock_name_of(const Trace& trace, const ClockDomain& domain) {
  const Part& part = trace.parts[domain.parts.front()];
  if (domain.parts.size() == 1 || part.machine_name.empty()) return "rank " + std::to_string(part.rank);
  return part.machine_name;
}

std::string match_name_of(const Matches& matches, const Edge& edge, uint32_t tag) {
  const Trace& trace = *matches.trace;
  if (edge.kind == TieKind::kCollectives) {
    const std::string& name = matches.names[edge.name];
    return name + " number " + std::to_string(tag + 1);
  }
  if (edge.kind == TieKind::kOperator || tag >= trace.cells.size()) return "match " + std::to_string(tag + 1);
  const Cell cell = trace.cells.at(tag);
  return "step " + std::to_string(cell.step) + ", " + cell_label(cell, true) + " of rank " +
         std::to_string(trace.parts[cell.part].rank);
}

}  // namespace stageline::align
