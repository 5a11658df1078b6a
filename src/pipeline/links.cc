#include "pipeline/links.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "model/stage_costs.h"
#include "pipeline/link_transfers.h"

namespace stageline {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr uint32_t kNoEdge = UINT32_MAX;
constexpr int64_t kLeastEdges = 2;  // of a class, to compare with

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return kNaN;
  const auto k = static_cast<size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(k), values.end());
  return values[k];
}

// Of an even number the lower middle one: of two links the slow one must not drag the measure up.
double lower_median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

struct StepMedian {
  int32_t step;
  double ns;
};

class LinkFinder {
 public:
  LinkFinder(const Trace& trace, const StepGraph& graph) : trace_(trace), graph_(graph) {}

  Links find() {
    Transfers transfers = find_transfers(trace_, graph_);
    out_.evidence = transfers.evidence;
    find_edges(transfers);
    find_classes();
    pair_ways(transfers.mapped);
    find_slow_steps();
    price();
    read();
    return std::move(out_);
  }

 private:
  using Key = std::tuple<int32_t, int32_t, bool>;  // from, to, forward

  const Part& part(int32_t p) const { return trace_.parts[static_cast<size_t>(p)]; }

  void find_edges(Transfers& transfers) {
    std::stable_sort(transfers.list.begin(), transfers.list.end(), [&](const Transfer& a, const Transfer& b) {
      return std::tuple(part(a.from_part).rank, part(a.to_part).rank, !a.forward, a.step) <
             std::tuple(part(b.from_part).rank, part(b.to_part).rank, !b.forward, b.step);
    });
    const auto& list = transfers.list;
    for (size_t i = 0; i < list.size();) {
      LinkEdge edge;
      edge.from_part = list[i].from_part;
      edge.to_part = list[i].to_part;
      edge.forward = list[i].forward;
      std::vector<double> all, bytes, rates, one_step;
      std::vector<StepMedian> by_step;
      const auto same = [&](const Transfer& t) {
        return t.from_part == edge.from_part && t.to_part == edge.to_part && t.forward == edge.forward;
      };
      while (i < list.size() && same(list[i])) {
        const int32_t step = list[i].step;
        one_step.clear();
        for (; i < list.size() && same(list[i]) && list[i].step == step; ++i) {
          one_step.push_back(list[i].ns);
          if (list[i].bytes < 0) continue;
          bytes.push_back(list[i].bytes);
          if (list[i].ns > 0) rates.push_back(list[i].bytes / (list[i].ns / 1e9));
        }
        all.insert(all.end(), one_step.begin(), one_step.end());
        by_step.push_back({step, lower_median(one_step)});
      }
      edge.messages = static_cast<int64_t>(all.size());
      edge.steps = static_cast<int64_t>(by_step.size());
      edge.p95_ns = quantile(all, 0.95);
      edge.median_ns = lower_median(std::move(all));
      edge.bytes = lower_median(std::move(bytes));
      edge.bytes_per_s = lower_median(std::move(rates));
      index_[{edge.from_part, edge.to_part, edge.forward}] = out_.edges.size();
      out_.edges.push_back(edge);
      by_step_.push_back(std::move(by_step));
    }
  }

  void find_classes() {
    std::map<std::pair<int32_t, bool>, std::vector<size_t>> classes;  // same machines first, forward first
    for (size_t e = 0; e < out_.edges.size(); ++e) {
      const Part &a = part(out_.edges[e].from_part), &b = part(out_.edges[e].to_part);
      const int32_t hosts = a.machine == kUnknown || b.machine == kUnknown ? -1 : a.machine == b.machine ? 1 : 0;
      classes[{-hosts, !out_.edges[e].forward}].push_back(e);
    }
    for (const auto& [key, members] : classes) {
      LinkClass c;
      c.hosts = -key.first;
      c.forward = !key.second;
      std::vector<double> medians;
      for (const size_t e : members) {
        out_.edges[e].link_class = out_.classes.size();
        c.messages += out_.edges[e].messages;
        medians.push_back(out_.edges[e].median_ns);
      }
      c.edges = static_cast<int64_t>(members.size());
      c.median_ns = lower_median(std::move(medians));
      out_.classes.push_back(c);
    }
  }

  const LinkClass& class_of(const LinkEdge& edge) const { return out_.classes[edge.link_class]; }

  size_t way_back(const LinkEdge& edge) const {
    const auto it = index_.find(Key{edge.to_part, edge.from_part, !edge.forward});
    return it == index_.end() ? SIZE_MAX : it->second;
  }

  // Tied by something between these two, not by a clock they share.
  bool tied_by_messages(const LinkEdge& edge) const {
    const auto measured = [&](int32_t p) { return is_measured(part(p).clock_map.evidence); };
    const Part &a = part(edge.from_part), &b = part(edge.to_part);
    if (a.machine != kUnknown && a.machine == b.machine &&
        (!measured(edge.from_part) || !measured(edge.to_part) ||
         part(edge.from_part).clock_map.segments.size() == part(edge.to_part).clock_map.segments.size())) {
      const auto& x = a.clock_map.segments;
      const auto& y = b.clock_map.segments;
      bool same = x.size() == y.size();
      for (size_t s = 0; same && s < x.size(); ++s) same = x[s].offset_ns == y[s].offset_ns && x[s].drift == y[s].drift;
      if (same) return false;
    }
    return measured(edge.from_part) || measured(edge.to_part);
  }

  void pair_ways(bool mapped) {
    for (LinkEdge& edge : out_.edges) {
      const size_t back = way_back(edge);
      edge.both_ns = back == SIZE_MAX ? kNaN : edge.median_ns + out_.edges[back].median_ns;
      edge.direction_known = !mapped || !tied_by_messages(edge);
      const double usual = usual_ns(edge);
      edge.ratio = usual > 0 ? measured_ns(edge) / usual : kNaN;
      if (class_of(edge).edges < kLeastEdges || std::isnan(edge.ratio)) edge.reading = LinkReading::kAlone;
    }
  }
  // What is compared: one way, or there and back.
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
      const double least = kSlowLinkRatio * usual_ns(edge);
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
        edge.slow_steps += ns >= least ? 1 : 0;
      }
    }
  }

  bool persistent(const LinkEdge& edge) const {
    return edge.reading != LinkReading::kAlone && edge.ratio >= kSlowLinkRatio &&
           static_cast<double>(edge.slow_steps) >= kSlowLinkSteps * static_cast<double>(edge.steps);
  }
  // What a message of the edge is longer than its class's.
  double excess_ns(const LinkEdge& edge) const {
    const double excess = measured_ns(edge) - usual_ns(edge);
    return edge.direction_known ? excess : excess / 2;  // which way it is longer nobody knows: half each
  }

  // By operation: the edge that it is a message of, and of a receiver's cell the edge whose message it waited for last.
  void map_operations() {
    edge_of_op_.assign(graph_.size(), kNoEdge);
    waited_on_.assign(graph_.size(), kNoEdge);
    const auto edge_of = [&](int32_t from, int32_t to, bool forward) {
      const auto it = index_.find(Key{from, to, forward});
      return it == index_.end() ? kNoEdge : static_cast<uint32_t>(it->second);
    };
    for (const GraphStep& step : graph_.steps)
      for (uint32_t i = step.begin; i < step.end; ++i) {
        const CellKind kind = graph_.kind[i];
        const bool forward = kind == CellKind::kSendForward || kind == CellKind::kRecvForward;
        if (is_message(kind) && graph_.cell[i] == kNoCell && !graph_.waits(i).empty()) {
          edge_of_op_[i] = edge_of(graph_.part[graph_.waits(i)[0]], graph_.part[i], forward);
        } else if (is_message(kind) && graph_.group[i] != kNoGroup) {
          const GraphGroup& group = graph_.groups[graph_.group[i]];
          if (group.end - group.begin != 2) continue;
          const uint32_t peer = group.begin == i ? i + 1 : group.begin;
          const bool sends = kind == CellKind::kSendForward || kind == CellKind::kSendBackward;
          edge_of_op_[i] = sends ? edge_of(graph_.part[i], graph_.part[peer], forward)
                                 : edge_of(graph_.part[peer], graph_.part[i], forward);
        } else if (is_compute(kind)) {
          uint32_t last = kNoEdge;
          for (const uint32_t on : graph_.waits(i))
            if (last == kNoEdge || graph_.end_ns[on] >= graph_.end_ns[last]) last = on;
          if (last != kNoEdge && graph_.cell[last] == kNoCell) waited_on_[i] = edge_of_op_[last];
        }
      }
    in_message_.assign(out_.edges.size(), 0);
    for (size_t op = 0; op < graph_.size(); ++op)
      if (const uint32_t e = edge_of_op_[op]; e != kNoEdge && graph_.cell[op] == kNoCell)
        in_message_[e] = std::max(in_message_[e], graph_.dur_ns[op]);
    for (size_t e = 0; e < out_.edges.size(); ++e)
      in_message_[e] = std::max(0.0, in_message_[e] - class_of(out_.edges[e]).median_ns);
  }

  void price() {
    std::vector<size_t> slow;
    for (size_t e = 0; e < out_.edges.size(); ++e)
      if (persistent(out_.edges[e])) slow.push_back(e);
    map_operations();
    std::stable_sort(slow.begin(), slow.end(), [&](size_t a, size_t b) {
      return excess_ns(out_.edges[a]) * static_cast<double>(out_.edges[a].messages) >
             excess_ns(out_.edges[b]) * static_cast<double>(out_.edges[b].messages);
    });
    priced_ = slow;
    if (priced_.size() > kMostPricedLinks) priced_.resize(kMostPricedLinks);
    constexpr uint32_t kNoWorld = UINT32_MAX;
    std::vector<uint32_t> world_of_edge(out_.edges.size(), kNoWorld);
    std::vector<bool> is_slow(out_.edges.size(), false);
    for (const size_t e : slow) is_slow[e] = true;
    for (size_t k = 0; k < priced_.size(); ++k) world_of_edge[priced_[k]] = static_cast<uint32_t>(k) + 2;
    // Worlds: as recorded, all slow links repaired, each of them.
    const WorldTimes times = replay_worlds(
        graph_, priced_.size() + 2,
        [&](uint32_t op, size_t first, std::span<double> dur_ns, std::span<double> delay_ns) {
          std::fill(dur_ns.begin(), dur_ns.end(), graph_.dur_ns[op]);
          // See stragglers.cc: delays of what does not compute are waiting.
          std::fill(delay_ns.begin(), delay_ns.end(), is_compute(graph_.kind[op]) ? graph_.delay_ns[op] : 0.0);
          const uint32_t own = edge_of_op_[op], waited = waited_on_[op];
          const uint32_t e = own != kNoEdge ? own : waited;
          if (e == kNoEdge || !is_slow[e]) return;
          const double excess = std::max(0.0, excess_ns(out_.edges[e]));
          double less_dur = 0, less_delay = 0;
          if (own == kNoEdge) {
            // The message's operation holds what its class usually takes; the rest became the receiver's delay.
            less_delay = std::clamp(excess - in_message_[e], 0.0, std::max(0.0, graph_.delay_ns[op]));
          } else if (graph_.cell[op] == kNoCell) {
            less_dur = std::clamp(in_message_[e], 0.0, std::max(0.0, graph_.dur_ns[op]));
          } else {
            less_dur = std::clamp(excess, 0.0, std::max(0.0, graph_.dur_ns[op]));
          }
          for (const uint32_t world : {1u, world_of_edge[e]}) {
            if (world == kNoWorld || world < first || world - first >= dur_ns.size()) continue;
            dur_ns[world - first] -= less_dur;
            delay_ns[world - first] -= less_delay;
          }
        });
    out_.step_ns = times.mean_ns(0);
    out_.saving_ns = slow.empty() ? 0 : out_.step_ns - times.mean_ns(1);
    out_.saving_share = out_.step_ns > 0 ? out_.saving_ns / out_.step_ns : 0;
    for (size_t k = 0; k < priced_.size(); ++k) {
      LinkEdge& edge = out_.edges[priced_[k]];
      edge.saving_ns = out_.step_ns - times.mean_ns(k + 2);
      edge.saving_share = out_.step_ns > 0 ? edge.saving_ns / out_.step_ns : 0;
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
      endpoint.send_peers = static_cast<int64_t>(peers[p].first.size());
      endpoint.receive_peers = static_cast<int64_t>(peers[p].second.size());
      endpoint.slow_sender = endpoint.send_peers > 1 && endpoint.slow_sends == endpoint.sends;
      endpoint.slow_receiver = endpoint.receive_peers > 1 && endpoint.slow_receives == endpoint.receives;
      out_.endpoints.push_back(endpoint);
    }
    for (size_t e = 0; e < out_.edges.size(); ++e) {
      LinkEdge& edge = out_.edges[e];
      if (edge.reading == LinkReading::kAlone) continue;
      if (slow[e])
        edge.reading = endpoints[edge.from_part].slow_sender   ? LinkReading::kRow
                       : endpoints[edge.to_part].slow_receiver ? LinkReading::kColumn
                       : edge.saving_share >= kLeastLinkWorth  ? LinkReading::kCell
                                                               : LinkReading::kCheap;
      else if (edge.slow_steps > 0)
        edge.reading = LinkReading::kNowAndThen;
    }
  }

  const Trace& trace_;
  const StepGraph& graph_;
  std::map<Key, size_t> index_;
  std::vector<std::vector<StepMedian>> by_step_;  // by edge
  std::vector<uint32_t> edge_of_op_, waited_on_;  // by operation
  std::vector<double> in_message_;                // by edge: of its excess, what its unrecorded messages hold
  std::vector<size_t> priced_;
  Links out_;
};

}  // namespace

std::string_view link_reading_name(LinkReading reading) {
  switch (reading) {
    case LinkReading::kFine: return "fine";
    case LinkReading::kNowAndThen: return "now and then";
    case LinkReading::kCheap: return "slow, worth little";
    case LinkReading::kCell: return "slow link";
    case LinkReading::kRow: return "slow sender";
    case LinkReading::kColumn: return "slow receiver";
    case LinkReading::kAlone: return "nothing to compare";
  }
  return "";
}

Links find_links(const Trace& trace, const StepGraph& graph) { return LinkFinder(trace, graph).find(); }

}  // namespace stageline
