#include "pipeline/cells/find_cells.h"
#include "pipeline/cells/host_work.h"
#include "pipeline/cells/problems.h"

namespace stageline {
namespace {

// Values for peers: there is no message; there is one, to a rank that is unknown or not in the input.
constexpr int32_t kNoMessage = -1, kUnknownPeer = -2;

// A forward stretch as a node in the flow of activations.
struct Node {
  uint32_t part = 0, stretch = 0;
  int64_t step = 0;
  int32_t to = kNoMessage;    // the part that its result is sent to
  int32_t from = kNoMessage;  // the part that its gradient is sent to, which is where its input came from
  bool has_backward = false;
  int64_t start_ns = 0;
  uint32_t next = kNoStretch;  // the node that its result feeds
  bool fed = false;
  int32_t stage = kUnknown, micro_batch = kUnknown;
};

struct Flow {
  std::vector<Node> nodes;  // ordered by part, then start
  int32_t stages = 0;       // number of virtual stages; 0 when not found
  int64_t known = 0;
};

// Lists the neighbours of every part in the ring of its pipeline. The order of stages is that of process groups, else
// that of rank numbers. Where one is missing between others, its neighbours are not each other's.
struct Ring {
  std::vector<int32_t> next, previous;
  bool from_groups = false;
};

Ring ring_of(const Trace& trace) {
  const RankLayout layout = layout_from_groups(trace);
  Ring out;
  out.from_groups = layout.stages > 0;
  std::map<int32_t, std::vector<std::pair<int32_t, int32_t>>> pipelines;  // replica → (place, part)
  for (uint32_t p = 0; p < trace.parts.size(); ++p) {
    const bool known = out.from_groups;
    pipelines[known ? layout.dp[p] : 0].emplace_back(known ? layout.stage[p] : trace.parts[p].rank,
                                                     static_cast<int32_t>(p));
  }
  out.next.assign(trace.parts.size(), kUnknownPeer);
  out.previous = out.next;
  for (auto& [replica, members] : pipelines) {
    std::ranges::sort(members);
    const size_t count = members.size();
    std::vector<int32_t> gaps;  // from each member to the next
    for (size_t i = 0; i + 1 < count; ++i) gaps.push_back(members[i + 1].first - members[i].first);
    const auto [min, max] = std::minmax_element(gaps.begin(), gaps.end());
    for (size_t i = 0; i < count; ++i) {
      if (i + 1 < count ? gaps[i] != *min : count > 1 && *min != *max) continue;
      const auto other = members[(i + 1) % count].second;
      out.next[members[i].second] = other;
      out.previous[other] = members[i].second;
    }
  }
  return out;
}

std::vector<Node> nodes_of(const std::vector<HostWork>& work, const Ring* ring) {
  std::vector<Node> out;
  for (uint32_t p = 0; p < work.size(); ++p)
    for (uint32_t i = 0; i < work[p].stretches.size(); ++i) {
      const Stretch& forward = work[p].stretches[i];
      if (forward.kind != CellKind::kForward) continue;
      Node node{.part = p,
                .stretch = i,
                .step = forward.step,
                .has_backward = forward.backward != kNoStretch,
                .start_ns = forward.start_ns};
      const auto peer = [&](const Stretch& s, const std::vector<int32_t>* neighbour) {
        if (!s.sends) return kNoMessage;
        if (neighbour != nullptr) return (*neighbour)[p];
        return s.to_part >= 0 ? s.to_part : kUnknownPeer;
      };
      node.to = peer(forward, ring != nullptr ? &ring->next : nullptr);
      node.from = node.has_backward
                      ? peer(work[p].stretches[forward.backward], ring != nullptr ? &ring->previous : nullptr)
                      : kUnknownPeer;
      out.push_back(node);
    }
  return out;
}

class FlowFinder {
 public:
  explicit FlowFinder(std::vector<Node> nodes) { flow_.nodes = std::move(nodes); }

  Flow find() {
    bend();
    join();
    label();
    return std::move(flow_);
  }

 private:
  using Ids = std::vector<uint32_t>;

  // Checks ranks that have both forwards with a kept result (sent to no rank) and forwards whose input no rank sent.
  // They are the bend of a V when each result was kept before the input that it becomes; otherwise the rank holds both
  // the first and the last stage.
  void bend() {
    std::map<std::pair<uint32_t, int64_t>, std::pair<Ids, Ids>> ends;  // (part, step) → kept results, local inputs
    for (uint32_t n = 0; n < flow_.nodes.size(); ++n) {
      const Node& node = flow_.nodes[n];
      if (!node.has_backward || (node.to == kNoMessage) == (node.from == kNoMessage)) continue;
      auto& [kept, local] = ends[{node.part, node.step}];
      (node.to == kNoMessage ? kept : local).push_back(n);
    }
    for (auto& [where, lists] : ends) {
      const auto& [kept, local] = lists;
      if (kept.empty() || kept.size() != local.size()) continue;
      bool before = true;
      for (size_t k = 0; k < kept.size(); ++k)
        before = before && flow_.nodes[kept[k]].start_ns < flow_.nodes[local[k]].start_ns;
      const bool first = flow_.nodes[local[0]].start_ns < flow_.nodes[kept[0]].start_ns;
      if (first || !before) continue;
      for (size_t k = 0; k < kept.size(); ++k) feed(kept[k], local[k]);
    }
  }

  void join() {
    // (step, from, to) → forwards sent on this road, forwards that came by it.
    std::map<std::tuple<int64_t, uint32_t, uint32_t>, std::pair<Ids, Ids>> roads;
    for (uint32_t n = 0; n < flow_.nodes.size(); ++n) {
      const Node& node = flow_.nodes[n];
      if (node.to >= 0) roads[{node.step, node.part, static_cast<uint32_t>(node.to)}].first.push_back(n);
      if (node.from >= 0) roads[{node.step, static_cast<uint32_t>(node.from), node.part}].second.push_back(n);
    }
    for (const auto& [where, lists] : roads) {
      const auto& [sent, got] = lists;
      if (sent.size() != got.size()) continue;  // a message is missing, so no pair on this road is certain
      for (size_t k = 0; k < sent.size(); ++k) feed(sent[k], got[k]);
    }
  }

  void feed(uint32_t from, uint32_t to) {
    flow_.nodes[from].next = to;
    flow_.nodes[to].fed = true;
  }

  // Numbers the micro-batches of the first stage in each step by time, and carries the numbers along paths of full
  // length.
  void label() {
    std::map<std::pair<uint32_t, int64_t>, int32_t> counted;
    std::vector<std::pair<uint32_t, int32_t>> paths;  // first node, and how many stages its path has
    std::map<int32_t, int64_t> lengths;
    for (uint32_t n = 0; n < flow_.nodes.size(); ++n) {
      Node& node = flow_.nodes[n];
      if (node.fed || node.from != kNoMessage) continue;
      node.micro_batch = counted[{node.part, node.step}]++;
      int32_t length = 1;
      uint32_t at = n;
      // A node is fed once at most, so a path has no circle.
      while (flow_.nodes[at].next != kNoStretch) at = flow_.nodes[at].next, ++length;
      // Skips paths that end in a message to a rank that is not in the input, and work without a receiver.
      if (flow_.nodes[at].to != kNoMessage || length < 2) continue;
      paths.emplace_back(n, length);
      ++lengths[length];
    }
    for (const auto& [length, count] : lengths)
      if (flow_.stages == 0 || count > lengths[flow_.stages]) flow_.stages = length;
    if (!stages_stand_still(paths)) flow_.stages = 0;
    for (const auto& [first, length] : paths) {
      if (length != flow_.stages) continue;
      int32_t stage = 0;
      for (uint32_t at = first; at != kNoStretch; at = flow_.nodes[at].next) {
        flow_.nodes[at].stage = stage++;
        flow_.nodes[at].micro_batch = flow_.nodes[first].micro_batch;
        ++flow_.known;
      }
    }
    for (Node& node : flow_.nodes)
      if (node.stage == kUnknown) node.micro_batch = kUnknown;
  }

  // Returns true where a stage stays on its rank from one micro-batch to the next and every rank belongs to one
  // pipeline. In rings of attention every rank begins paths, so neither holds.
  bool stages_stand_still(const std::vector<std::pair<uint32_t, int32_t>>& paths) const {
    std::map<uint32_t, std::vector<uint32_t>> ways;  // first part → parts by stage
    std::map<uint32_t, uint32_t> pipeline_of;        // part → first part
    for (const auto& [first, length] : paths) {
      if (length != flow_.stages) continue;
      std::vector<uint32_t> way;
      for (uint32_t at = first; at != kNoStretch; at = flow_.nodes[at].next) way.push_back(flow_.nodes[at].part);
      const auto [known, added] = ways.emplace(way[0], way);
      if (!added && known->second != way) return false;
      for (const uint32_t part : way)
        if (pipeline_of.emplace(part, way[0]).first->second != way[0]) return false;
    }
    return true;
  }

  Flow flow_;
};

// Assumed peers count only in the steps that they explain completely: every forward has its place, and none starts
// before the forward that feeds it. In all other steps their results are removed.
void keep_explained_steps(Flow& flow) {
  std::set<int64_t> bad;
  for (const Node& node : flow.nodes)
    if (node.stage == kUnknown || node.step == kOutside ||
        (node.next != kNoStretch && flow.nodes[node.next].start_ns < node.start_ns))
      bad.insert(node.step);
  flow.known = 0;
  for (Node& node : flow.nodes) {
    if (bad.count(node.step) != 0) node.stage = node.micro_batch = kUnknown;
    flow.known += node.stage != kUnknown ? 1 : 0;
  }
  if (flow.known == 0) flow.stages = 0;
}

std::vector<CellMark> marks_of(const Trace& trace, const std::vector<HostWork>& work, const std::vector<Node>& nodes) {
  std::vector<CellMark> out;
  std::vector<std::vector<uint32_t>> node_of(work.size());
  for (uint32_t p = 0; p < work.size(); ++p) node_of[p].assign(work[p].stretches.size(), kNoStretch);
  for (uint32_t n = 0; n < nodes.size(); ++n) node_of[nodes[n].part][nodes[n].stretch] = n;
  for (uint32_t p = 0; p < work.size(); ++p)
    for (const Stretch& stretch : work[p].stretches) {
      CellMark mark{.part = p,
                    .lane = stretch.lane,
                    .slice = stretch.slice,
                    .start_ns = stretch.start_ns,
                    .end_ns = stretch.end_ns,
                    .kind = stretch.kind};
      if (stretch.forward != kNoStretch) {
        const Node& node = nodes[node_of[p][stretch.forward]];
        mark.stage = node.stage;
        mark.micro_batch = node.micro_batch;
      }
      out.push_back(mark);
    }
  for (uint32_t p = 0; p < work.size(); ++p)
    for (const HostMessage& message : work[p].messages) {
      const Stretch& stretch = work[p].stretches[message.stretch];
      CellMark mark{.part = p,
                    .lane = message.lane,
                    .slice = message.slice,
                    .start_ns = trace.parts[p].slices.start_ns[message.slice],
                    .end_ns = trace.parts[p].slices.end_ns(message.slice),
                    .kind = stretch.kind == CellKind::kForward
                                ? message.is_send ? CellKind::kSendForward : CellKind::kRecvForward
                            : message.is_send ? CellKind::kSendBackward
                                              : CellKind::kRecvBackward};
      if (stretch.forward != kNoStretch) {
        mark.stage = nodes[node_of[p][stretch.forward]].stage;
        mark.micro_batch = nodes[node_of[p][stretch.forward]].micro_batch;
      }
      out.push_back(mark);
    }
  return out;
}

}  // namespace

std::vector<CellMark> infer_cells(const Trace& trace, Diagnostics& diagnostics) {
  std::vector<HostWork> work = find_host_work(trace);
  int64_t messages = 0, nodes = 0, active = 0;
  bool peers = true;
  for (const HostWork& part : work) {
    if (part.stretches.empty()) continue;
    ++active;
    messages += part.sends + part.receives;
    nodes += part.nodes;
    peers = peers && part.has_peers;
  }
  if (active == 0) return {};
  Flow flow;
  if (peers) {
    flow = FlowFinder(nodes_of(work, nullptr)).find();
  } else {
    const Ring ring = ring_of(trace);
    flow = FlowFinder(nodes_of(work, &ring)).find();
    keep_explained_steps(flow);
  }
  // Work between messages does not make a pipeline, because rings of attention send and receive too.
  if (flow.stages < 2 && layout_from_groups(trace).stages < 2) {
    diagnostics.add(problem::cells_no_flow, {}, messages);
    return {};
  }
  std::vector<CellMark> marks = marks_of(trace, work, flow.nodes);
  const auto unknown =
      std::ranges::count_if(marks, [](const CellMark& m) { return is_compute(m.kind) && m.stage == kUnknown; });
  diagnostics.add(problem::cells_inferred_work, Args().set("nodes", grouped(nodes)).set("messages", grouped(messages)));
  if (flow.stages > 0)
    diagnostics.add(problem::cells_inferred_flow, Args().flag("peers", peers).count("stages", flow.stages));
  diagnostics.add(problem::cells_inferred_unknown, {}, unknown);
  return marks;
}

}  // namespace stageline
