#include "pipeline/measure/links.h"

namespace stageline {
namespace {

constexpr uint32_t kNoEdge = UINT32_MAX;
// Share of a transfer within which a send and its receive count as ending together.
constexpr double kEndsTogether = 0.25;
// A cell waited for a message if it starts at most this many of the link's medians after the message began.
constexpr double kExplained = 1.5;
constexpr int64_t kMinEdges = 2;  // links that a class needs so that one can be compared

double edge_quantile(std::vector<double> values, double share) {
  if (values.empty()) return kNaN;
  const auto k = static_cast<size_t>(share * (values.size() - 1));
  std::nth_element(values.begin(), values.begin() + k, values.end());
  return values[k];
}

// With an even number it is the lower middle value: of two links, the slow one must not raise the measure.
double lower_median(std::vector<double> values) { return edge_quantile(std::move(values), 0.5); }

struct StepMedian {
  int32_t step;
  double ns;
};

class LinkFinder {
 public:
  LinkFinder(const Trace& trace, const StepGraph& graph, const PipelineSums& sums)
      : trace_(trace), graph_(graph), outliers_(sums.outliers) {}

  Links find() {
    bool mapped = false;
    {
      const LinkTransfers transfers = find_transfers(trace_, graph_);
      out_.evidence = transfers.evidence;
      mapped = transfers.mapped;
      find_edges(transfers);
    }
    find_classes();
    pair_ways(mapped);
    find_slow_steps();
    price();
    read();
    return std::move(out_);
  }

 private:
  using Key = std::tuple<int32_t, int32_t, bool>;  // from, to, forward

  const Part& part(int32_t p) const { return trace_.parts[p]; }

  // Returns the numbers of the transfers ordered by ranks, direction and step. A large run has millions of transfers
  // between thousands of pairs of ranks, so they are counted into these pairs. The transfers of a pair mostly come in
  // the order of their steps.
  std::vector<uint32_t> by_ranks(const LinkTransfers& transfers) const {
    struct Pair {
      size_t number = 0, count = 0, end = 0;
    };
    std::map<Key, Pair> pairs;  // ordered by rank of the sender, rank of the receiver, direction: forward first
    std::vector<uint32_t> pair_of(transfers.size());
    std::array<std::pair<Key, Pair*>, 2> known{};  // by direction: the one before, mostly the same
    for (size_t i = 0; i < transfers.size(); ++i) {
      const LinkTransfer t = transfers.at(i);
      const Key own{part(t.from_part).rank, part(t.to_part).rank, !t.forward};
      auto& [key, pair] = known[t.forward ? 0 : 1];
      if (!pair || key != own) {
        const auto [at, fresh] = pairs.try_emplace(own);
        if (fresh) at->second.number = pairs.size() - 1;
        key = own, pair = &at->second;
      }
      ++pair->count;
      pair_of[i] = static_cast<uint32_t>(pair->number);
    }
    std::vector<size_t> next(pairs.size());
    size_t begin = 0;
    for (auto& [key, pair] : pairs) next[pair.number] = begin, pair.end = begin += pair.count;
    std::vector<uint32_t> order(transfers.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[next[pair_of[i]]++] = i;
    const auto earlier = [&](uint32_t a, uint32_t b) { return transfers.at(a).step < transfers.at(b).step; };
    for (const auto& [key, pair] : pairs) {
      const auto end = order.begin() + pair.end;
      const auto first = end - pair.count;
      if (!std::is_sorted(first, end, earlier)) std::stable_sort(first, end, earlier);
    }
    return order;
  }

  void find_edges(const LinkTransfers& transfers) {
    const std::vector<uint32_t> order = by_ranks(transfers);
    const auto at = [&](size_t i) { return transfers.at(order[i]); };
    for (size_t i = 0; i < order.size();) {
      LinkEdge edge;
      const LinkTransfer first = at(i);
      edge.from_part = first.from_part;
      edge.to_part = first.to_part;
      edge.forward = first.forward;
      std::vector<double> all, bytes, rates, one_step, end_gaps;
      std::vector<StepMedian> by_step;
      const auto same = [&](const LinkTransfer& t) {
        return t.from_part == edge.from_part && t.to_part == edge.to_part && t.forward == edge.forward;
      };
      while (i < order.size() && same(at(i))) {
        const int32_t step = at(i).step;
        one_step.clear();
        for (; i < order.size() && same(at(i)) && at(i).step == step; ++i) {
          const LinkTransfer transfer = at(i);
          one_step.push_back(transfer.ns);
          end_gaps.push_back(transfer.end_gap_ns);
          if (transfer.bytes < 0) continue;
          bytes.push_back(transfer.bytes);
          if (transfer.ns > 0) rates.push_back(transfer.bytes / (transfer.ns / 1e9));
        }
        all.insert(all.end(), one_step.begin(), one_step.end());
        by_step.push_back({step, lower_median(one_step)});
      }
      edge.messages = all.size();
      edge.steps = by_step.size();
      edge.p95_ns = edge_quantile(all, 0.95);
      edge.median_ns = lower_median(std::move(all));
      edge.bytes = lower_median(std::move(bytes));
      edge.bytes_per_s = lower_median(std::move(rates));
      index_[{edge.from_part, edge.to_part, edge.forward}] = out_.edges.size();
      out_.edges.push_back(edge);
      by_step_.push_back(std::move(by_step));
      end_gap_ns_.push_back(lower_median(std::move(end_gaps)));
    }
  }

  void find_classes() {
    // Links within a machine come first, forward ones first.
    std::map<std::pair<int32_t, bool>, std::vector<size_t>> classes;
    for (size_t e = 0; e < out_.edges.size(); ++e) {
      const Part &a = part(out_.edges[e].from_part), &b = part(out_.edges[e].to_part);
      const int32_t hosts = a.machine == kUnknown || b.machine == kUnknown ? -1 : a.machine == b.machine ? 1 : 0;
      classes[{-hosts, !out_.edges[e].forward}].push_back(e);
    }
    for (const auto& [key, members] : classes) {
      LinkClass c{.forward = !key.second, .hosts = -key.first};
      std::vector<double> medians;
      for (const size_t e : members) {
        out_.edges[e].link_class = out_.classes.size();
        c.messages += out_.edges[e].messages;
        medians.push_back(out_.edges[e].median_ns);
      }
      c.edges = members.size();
      std::sort(medians.begin(), medians.end());
      c.median_ns = usual_link_ns(medians);
      out_.classes.push_back(c);
    }
  }

  const LinkClass& class_of(const LinkEdge& edge) const { return out_.classes[edge.link_class]; }

  size_t way_back(const LinkEdge& edge) const {
    const auto it = index_.find(Key{edge.to_part, edge.from_part, !edge.forward});
    return it == index_.end() ? SIZE_MAX : it->second;
  }

  static bool same_clock(const Part& a, const Part& b) {
    const auto &x = a.clock_map.segments, &y = b.clock_map.segments;
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const ClockSegment& s, const ClockSegment& t) {
      return s.from_ns == t.from_ns && s.offset_ns == t.offset_ns && s.drift == t.drift;
    });
  }

  // If two clocks were aligned by the messages between their ranks, timestamps show the longer direction only if sends
  // end together with their receives: both then record that same moment.
  bool knows_direction(size_t e, bool mapped) const {
    const LinkEdge& edge = out_.edges[e];
    if (!mapped || same_clock(part(edge.from_part), part(edge.to_part))) return true;
    const size_t back = way_back(edge);
    return back != SIZE_MAX && end_gap_ns_[e] >= 0 && end_gap_ns_[back] >= 0 &&
           end_gap_ns_[e] + end_gap_ns_[back] <= kEndsTogether * edge.both_ns;
  }

  void pair_ways(bool mapped) {
    for (LinkEdge& edge : out_.edges) {
      const size_t back = way_back(edge);
      edge.both_ns = back == SIZE_MAX ? kNaN : edge.median_ns + out_.edges[back].median_ns;
    }
    for (size_t e = 0; e < out_.edges.size(); ++e) {
      LinkEdge& edge = out_.edges[e];
      edge.direction_known = knows_direction(e, mapped);
      const double usual = usual_ns(edge);
      edge.ratio = usual > 0 ? measured_ns(edge) / usual : kNaN;
      if (class_of(edge).edges < kMinEdges || std::isnan(edge.ratio)) edge.reading = LinkReading::kAlone;
    }
  }
  // The measure that is compared with the class: one way, or both ways together.
  double measured_ns(const LinkEdge& edge) const { return edge.direction_known ? edge.median_ns : edge.both_ns; }
  double usual_ns(const LinkEdge& edge) const {
    if (edge.direction_known) return class_of(edge).median_ns;
    const size_t back = way_back(edge);
    return back == SIZE_MAX ? kNaN : class_of(edge).median_ns + class_of(out_.edges[back]).median_ns;
  }

  void find_slow_steps() {
    for (size_t e = 0; e < out_.edges.size(); ++e) {
      LinkEdge& edge = out_.edges[e];
      if (edge.reading == LinkReading::kAlone) continue;
      const double min = kSlowLinkRatio * usual_ns(edge);
      const size_t back = edge.direction_known ? SIZE_MAX : way_back(edge);
      size_t b = 0;
      for (const StepMedian& here : by_step_[e]) {
        double ns = here.ns;
        if (back != SIZE_MAX) {
          const auto& there = by_step_[back];
          while (b < there.size() && there[b].step < here.step) ++b;
          if (b == there.size() || there[b].step != here.step) continue;
          ns += there[b].ns;
        }
        edge.slow_steps += ns >= min ? 1 : 0;
      }
    }
  }

  bool persistent(const LinkEdge& edge) const {
    return edge.reading != LinkReading::kAlone && edge.ratio >= kSlowLinkRatio &&
           edge.slow_steps >= kSlowLinkSteps * edge.steps;
  }
  // Returns how much longer a message of the edge takes than its class's median; with an unknown direction, as aligned
  // clocks say.
  double excess_ns(const LinkEdge& edge) const { return std::max(0.0, edge.median_ns - class_of(edge).median_ns); }

  // Finds for each message the edge that it takes and, for a receiver's cell, the edge whose message it waited for.
  void map_operations() {
    edge_of_op_.assign(graph_.size(), kNoEdge);
    const auto edge_of = [&](int32_t from, int32_t to, bool forward) {
      const auto it = index_.find(Key{from, to, forward});
      return it == index_.end() ? kNoEdge : static_cast<uint32_t>(it->second);
    };
    for (const GraphStep& step : graph_.steps)
      for (uint32_t i = step.begin; i < step.end; ++i) {
        const CellKind kind = graph_.kind[i];
        const bool forward = is_of_forward(kind);
        if (is_message(kind) && graph_.cell[i] == kNoCell && !graph_.waits(i).empty()) {
          edge_of_op_[i] = edge_of(graph_.part[graph_.waits(i)[0]], graph_.part[i], forward);
        } else if (is_message(kind) && graph_.group(i) != kNoGroup) {
          const GraphGroup& group = graph_.groups[graph_.group(i)];
          if (group.end - group.begin != 2) continue;
          const uint32_t peer = group.begin == i ? i + 1 : group.begin;
          const bool sends = is_send(kind);
          edge_of_op_[i] = sends ? edge_of(graph_.part[i], graph_.part[peer], forward)
                                 : edge_of(graph_.part[peer], graph_.part[i], forward);
        } else if (is_compute(kind)) {
          // The wait that ended last is not evidence here. A message operation is truncated to its usual time, so the
          // extra time of a slow message, and the time its rank was busy, both appear as the cell's delay. A cell that
          // starts far later than a message takes did not wait for it.
          for (const uint32_t on : graph_.waits(i)) {
            const uint32_t e = graph_.cell[on] == kNoCell && is_message(graph_.kind[on]) ? edge_of_op_[on] : kNoEdge;
            if (e != kNoEdge && graph_.start_ns[i] - graph_.start_ns[on] <= kExplained * out_.edges[e].median_ns)
              edge_of_op_[i] = e;
          }
        }
      }
    in_message_.assign(out_.edges.size(), 0);
    for (size_t op = 0; op < graph_.size(); ++op)
      if (const uint32_t e = edge_of_op_[op]; e != kNoEdge && graph_.cell[op] == kNoCell)
        in_message_[e] = std::max(in_message_[e], graph_.dur_ns[op]);
    for (size_t e = 0; e < out_.edges.size(); ++e)
      in_message_[e] = std::max(0.0, in_message_[e] - class_of(out_.edges[e]).median_ns);
  }

  // Mean over steps without outliers, which every other cause leaves out as well.
  double mean_over(const WorldTimes& times, size_t world) const {
    double sum = 0, count = 0;
    for (size_t s = 0; s < graph_.steps.size(); ++s) {
      if (std::binary_search(outliers_.begin(), outliers_.end(), graph_.steps[s].step)) continue;
      sum += times.ns(s, world);
      count += 1;
    }
    return count > 0 ? sum / count : kNaN;
  }

  void price() {
    std::vector<size_t> slow;
    for (size_t e = 0; e < out_.edges.size(); ++e)
      if (persistent(out_.edges[e])) slow.push_back(e);
    if (!slow.empty()) map_operations();
    std::stable_sort(slow.begin(), slow.end(), [&](size_t a, size_t b) {
      return excess_ns(out_.edges[a]) * out_.edges[a].messages > excess_ns(out_.edges[b]) * out_.edges[b].messages;
    });
    priced_ = slow;
    if (priced_.size() > kMaxPricedLinks) priced_.resize(kMaxPricedLinks);
    std::vector<bool> is_slow(out_.edges.size(), false);
    for (const size_t e : slow) is_slow[e] = true;
    find_boundaries(is_slow);
    uint32_t worlds = 0;
    const std::vector<std::vector<uint32_t>> worlds_of = repaired_worlds(slow, worlds);
    const WorldTimes times = replay_repaired(worlds_of, worlds);
    const auto mean_ns = [&](size_t w) { return mean_over(times, w); };
    out_.step_ns = mean_ns(0);
    const auto share = [&](double ns) { return out_.step_ns > 0 ? ns / out_.step_ns : 0; };
    out_.saving_ns = slow.empty() ? 0 : out_.step_ns - mean_ns(1);
    out_.saving_share = share(out_.saving_ns);
    size_t world = 2;
    for (const size_t e : priced_) {
      out_.edges[e].saving_ns = out_.step_ns - mean_ns(world++);
      out_.edges[e].saving_share = share(out_.edges[e].saving_ns);
    }
    for (LinkBoundary& boundary : out_.boundaries) {
      boundary.saving_ns = out_.step_ns - mean_ns(world++);
      boundary.saving_share = share(boundary.saving_ns);
    }
  }

  // Scenarios are: as recorded, with all slow links repaired, with each of them repaired (both ways if the direction is
  // unknown), and with each boundary repaired. Returns for each edge the scenarios in which it is repaired.
  std::vector<std::vector<uint32_t>> repaired_worlds(const std::vector<size_t>& slow, uint32_t& worlds) const {
    std::vector<std::vector<uint32_t>> out(out_.edges.size());
    worlds = 2;
    for (const size_t e : slow) out[e].push_back(1);
    for (const size_t e : priced_) {
      out[e].push_back(worlds);
      if (const size_t back = way_back(out_.edges[e]); !out_.edges[e].direction_known && back != SIZE_MAX)
        out[back].push_back(worlds);
      ++worlds;
    }
    for (const LinkBoundary& boundary : out_.boundaries) {
      for (const size_t e : slow)
        if (boundary_of(out_.edges[e]) == std::pair(boundary.stage, boundary.other_stage)) out[e].push_back(worlds);
      ++worlds;
    }
    return out;
  }

  WorldTimes replay_repaired(const std::vector<std::vector<uint32_t>>& worlds_of, uint32_t worlds) const {
    return replay_worlds(
        graph_, worlds, [&](uint32_t op, size_t first, std::span<double> dur_ns, std::span<double> delay_ns) {
          std::fill(dur_ns.begin(), dur_ns.end(), graph_.dur_ns[op]);
          std::fill(delay_ns.begin(), delay_ns.end(), graph_.delay_ns[op]);
          if (edge_of_op_.empty()) return;
          const uint32_t e = edge_of_op_[op];
          if (e == kNoEdge || worlds_of[e].empty()) return;
          const double excess = excess_ns(out_.edges[e]);
          double less_dur = 0, less_delay = 0;
          if (!is_message(graph_.kind[op]))
            // The message's operation takes what is usual in its class; the rest became a delay of the receiver's cell.
            less_delay = std::clamp(excess - in_message_[e], 0.0, std::max(0.0, graph_.delay_ns[op]));
          else
            less_dur = std::clamp(graph_.cell[op] == kNoCell ? std::min(excess, in_message_[e]) : excess, 0.0,
                                  std::max(0.0, graph_.dur_ns[op]));
          for (const uint32_t world : worlds_of[e]) {
            if (world < first || world - first >= dur_ns.size()) continue;
            dur_ns[world - first] -= less_dur;
            delay_ns[world - first] -= less_delay;
          }
        });
  }

  std::pair<int32_t, int32_t> boundary_of(const LinkEdge& edge) const {
    return std::minmax({part(edge.from_part).stage, part(edge.to_part).stage});
  }

  void find_boundaries(const std::vector<bool>& is_slow) {
    struct Count {
      int64_t links[2] = {0, 0}, slow[2] = {0, 0};
      std::set<int32_t> replicas;
    };
    std::map<std::pair<int32_t, int32_t>, Count> counts;
    for (size_t e = 0; e < out_.edges.size(); ++e) {
      const LinkEdge& edge = out_.edges[e];
      if (part(edge.from_part).stage == kUnknown || part(edge.to_part).stage == kUnknown) continue;
      Count& c = counts[boundary_of(edge)];
      ++c.links[edge.forward ? 1 : 0];
      c.slow[edge.forward ? 1 : 0] += is_slow[e] ? 1 : 0;
      c.replicas.insert(part(edge.from_part).dp);
    }
    for (const auto& [stages, c] : counts) {
      const bool all = (c.slow[0] > 0 && c.slow[0] == c.links[0]) || (c.slow[1] > 0 && c.slow[1] == c.links[1]);
      if (all && c.replicas.size() > 1 && out_.boundaries.size() < kMaxPricedLinks)
        out_.boundaries.push_back({stages.first, stages.second, c.links[0] + c.links[1], c.slow[0] + c.slow[1], 0, 0});
    }
  }

  void read() {
    std::vector<bool> slow(out_.edges.size(), false);
    for (size_t e = 0; e < out_.edges.size(); ++e) slow[e] = persistent(out_.edges[e]);
    std::map<int32_t, LinkEndpoint> endpoints;
    std::map<int32_t, std::pair<std::set<int32_t>, std::set<int32_t>>> peers;
    for (size_t e = 0; e < out_.edges.size(); ++e) {
      const LinkEdge& edge = out_.edges[e];
      LinkEndpoint &from = endpoints[edge.from_part], &to = endpoints[edge.to_part];
      ++from.sends;
      ++to.receives;
      from.slow_sends += slow[e] ? 1 : 0;
      to.slow_receives += slow[e] ? 1 : 0;
      peers[edge.from_part].first.insert(edge.to_part);
      peers[edge.to_part].second.insert(edge.from_part);
    }
    for (auto& [p, endpoint] : endpoints) {
      endpoint.part = p;
      endpoint.send_peers = peers[p].first.size();
      endpoint.receive_peers = peers[p].second.size();
      endpoint.slow_sender = endpoint.send_peers > 1 && endpoint.slow_sends == endpoint.sends;
      endpoint.slow_receiver = endpoint.receive_peers > 1 && endpoint.slow_receives == endpoint.receives;
      out_.endpoints.push_back(endpoint);
    }
    for (size_t e = 0; e < out_.edges.size(); ++e) {
      LinkEdge& edge = out_.edges[e];
      if (edge.reading == LinkReading::kAlone && edge.median_ns < 0) edge.reading = LinkReading::kNegative;
      if (edge.reading == LinkReading::kAlone || edge.reading == LinkReading::kNegative) continue;
      const auto boundary = std::find_if(out_.boundaries.begin(), out_.boundaries.end(), [&](const LinkBoundary& b) {
        return std::pair(b.stage, b.other_stage) == boundary_of(edge) && b.saving_share >= kMinLinkWorth;
      });
      if (slow[e])
        edge.reading = endpoints[edge.from_part].slow_sender   ? LinkReading::kRow
                       : endpoints[edge.to_part].slow_receiver ? LinkReading::kColumn
                       : boundary != out_.boundaries.end()     ? LinkReading::kBoundary
                       : edge.saving_share >= kMinLinkWorth    ? LinkReading::kCell
                                                               : LinkReading::kCheap;
      else if (edge.slow_steps > 0) edge.reading = LinkReading::kSometimes;
      if (!slow[e] && edge.median_ns < 0) edge.reading = LinkReading::kNegative;
    }
  }

  const Trace& trace_;
  const StepGraph& graph_;
  const std::vector<int32_t>& outliers_;
  std::map<Key, size_t> index_;
  std::vector<std::vector<StepMedian>> by_step_;  // for each edge
  std::vector<uint32_t> edge_of_op_;              // for each operation; empty: no link is slow
  std::vector<double> end_gap_ns_;                // for each edge, the median; −1: no ends were recorded
  // For each edge, the part of its excess that is in the operations of its unrecorded messages.
  std::vector<double> in_message_;
  std::vector<size_t> priced_;
  Links out_;
};

}  // namespace

std::string_view link_reading_name(LinkReading reading) {
  static constexpr auto kTexts =
      texts_by<LinkReading::kNegative>({"fine", "sometimes", "slow, worth little", "slow link", "slow sender",
                                        "slow receiver", "slow boundary", "nothing to compare", "negative"});
  return kTexts[reading];
}

double usual_link_ns(const std::vector<double>& sorted, size_t without) {
  constexpr size_t kMinFastShare = 4;  // at least one of this number of links must be fast
  const size_t count = sorted.size() - (without < sorted.size() ? 1 : 0);
  if (count == 0) return 0;
  const auto median = [&](size_t i) { return sorted[i < without ? i : i + 1]; };
  const size_t middle = (count - 1) / 2;
  for (size_t i = middle; i > 0 && i * kMinFastShare >= count; --i)
    if (median(i) >= kFarSlower * median(i - 1) && median(i - 1) > 0) return median((i - 1) / 2);
  return median(middle);
}

Links find_links(const Trace& trace, const StepGraph& graph, const PipelineSums& sums) {
  return LinkFinder(trace, graph, sums).find();
}

}  // namespace stageline
