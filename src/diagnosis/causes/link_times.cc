#include "diagnosis/causes/link_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "diagnosis/causes/start_reasons.h"
#include "pipeline/measure/links.h"
#include "pipeline/measure/op_values.h"
#include "pipeline/sums/stage_costs.h"

namespace stageline {
namespace {

bool receives(CellKind kind) { return kind == CellKind::kRecvForward || kind == CellKind::kRecvBackward; }

int32_t other_end(const StepGraph& g, uint32_t op) {
  for (const uint32_t on : g.waits(op))
    if (g.stage(on) != g.stage(op)) return g.stage(on);
  if (g.group(op) != kNoGroup) {
    const GraphGroup& group = g.groups[g.group(op)];
    for (uint32_t i = group.begin; i < group.end && i < group.begin + 4; ++i)
      if (g.stage(i) != g.stage(op)) return g.stage(i);
  }
  return kUnknown;
}

// The stage on the other side of a message; kUnknown: not known, or stages between the two were not read, whose work is
// in its time. With chunks, the last stage sends to the first.
int32_t sender_of(const CauseScene& scene, uint32_t op) {
  const StepGraph& g = scene.graph;
  const int32_t other = other_end(g, op), apart = std::abs(other - g.stage(op));
  const bool neighbours = apart == 1 || (scene.times.chunks() > 1 && apart == g.stage_count - 1);
  return other != kUnknown && neighbours ? other : kUnknown;
}

// A message is late if it exceeds its link's median by this share of the median compute cell.
constexpr double kLongMessage = 0.1;
constexpr double kMaxLate = 0.3;  // share of a link's messages; where more are late, the link is slow
constexpr double kMaxOfStepsMessages =
    0.5;  // share of a link's messages in one step; where at least as many are late, the link is slow in that step
constexpr double kInWholeSteps = 0.8;        // least share of a link's late messages that such steps must hold
constexpr int64_t kMinCertainMessages = 16;  // fewer late ones may be chance

Transfers fair_transfers(const CauseScene& scene, const LateWorkers& late) {
  const StepGraph& g = scene.graph;
  Transfers t;
  t.edge_of = std::make_shared<RawValues<uint32_t>>();
  RawValues<uint32_t>& edge_of = *t.edge_of;
  edge_of.resize(g.size());
  // Each block numbers the edges that it meets. A part has few neighbours, so the last ones met are tried before all.
  struct Known {
    int32_t other = kUnknown;
    bool in = false;
    uint32_t edge = CellTimes::kNone;
  };
  struct Block {
    std::vector<std::array<Known, 4>> known;
    std::vector<uint8_t> oldest;
    std::map<ReplicaLink, uint32_t> index;
    std::vector<uint32_t> edge;  // for each of the block's own numbers, an index of Transfers::index
    bool recorded = false;       // some message was recorded
  };
  const OpBlocks blocks(g.size(), 4 * g.stage_of.size());
  std::vector<Block> of_block(blocks.size());
  const auto number_of = [&](Block& block, uint32_t op) {
    if (!is_message(g.kind[op]) || g.stage(op) == kUnknown) return CellTimes::kNone;
    block.recorded = block.recorded || g.cell[op] != kNoCell;
    const int32_t other = sender_of(scene, op);
    if (other == kUnknown) return CellTimes::kNone;
    const bool in = receives(g.kind[op]);
    const size_t part = g.part[op];
    if (block.known.empty()) block.known.resize(g.stage_of.size()), block.oldest.resize(g.stage_of.size());
    auto& known = block.known[part];
    auto at = std::find_if(known.begin(), known.end(), [&](const Known& k) {
      return k.edge != CellTimes::kNone && k.other == other && k.in == in;
    });
    if (at == known.end()) {
      const ReplicaLink edge =
          in ? ReplicaLink{g.dp(op), other, g.stage(op)} : ReplicaLink{g.dp(op), g.stage(op), other};
      const auto [number, fresh] = block.index.try_emplace(edge, static_cast<uint32_t>(block.index.size()));
      at = known.begin() + block.oldest[part];
      block.oldest[part] = static_cast<uint8_t>((block.oldest[part] + 1) % known.size());
      *at = {other, in, number->second};
    }
    return at->edge;
  };
  blocks.each([&](size_t b, uint32_t op) { edge_of[op] = number_of(of_block[b], op); });
  for (Block& block : of_block) {
    t.recorded = t.recorded || block.recorded;
    block.edge.resize(block.index.size());
    for (const auto& [edge, number] : block.index)
      block.edge[number] = t.index.try_emplace(edge, static_cast<uint32_t>(t.index.size())).first->second;
  }
  blocks.each([&](size_t b, uint32_t op) {
    if (edge_of[op] != CellTimes::kNone) edge_of[op] = of_block[b].edge[edge_of[op]];
  });
  of_block.clear();
  t.recorded = t.recorded || g.messages_recorded;
  std::map<StagePair, double> late_of;  // key: replica, stage
  for (const auto& [worker, ns] : late)
    late_of[{scene.times.workers()[worker].dp, scene.times.workers()[worker].stage}] = ns;
  OpValues received(
      {{0, static_cast<uint32_t>(g.size())}}, t.index.size(),
      [&](uint32_t op) { return receives(g.kind[op]) ? edge_of[op] : OpValues::kNone; },
      [&](uint32_t op) {
        // A gap between cells includes the delay of a late rank, for which the link is not to blame.
        const auto by =
            !t.recorded && !late_of.empty() ? late_of.find({std::max(g.dp(op), 0), g.stage(op)}) : late_of.end();
        return std::max(0.0, g.dur_ns[op] - (by == late_of.end() ? 0 : by->second));
      });
  const std::vector<double> medians = t.median_ns = received.take_medians();
  t.max_ns.assign(t.index.size(), 0);
  scene.each_op([&](uint32_t op, size_t) {
    if (receives(g.kind[op]) && edge_of[op] != CellTimes::kNone)
      t.max_ns[edge_of[op]] = std::max(t.max_ns[edge_of[op]], g.dur_ns[op]);
  });
  for (const auto& [edge, number] : t.index)
    if (!std::isnan(medians[number]))
      t.links[{std::get<1>(edge), std::get<2>(edge)}].emplace_back(medians[number], std::get<0>(edge));
  return t;
}

// Returns whether a link runs between machines in some replica.
bool is_across(const Trace& trace, const StagePair& link) {
  std::map<int32_t, std::array<int32_t, 2>> machines;  // for each replica the machines of both stages
  for (const Part& part : trace.parts)
    for (const int32_t stage : {link.first, link.second})
      if (part.stage == stage)
        machines.try_emplace(part.dp, std::array{kUnknown, kUnknown}).first->second[stage == link.second ? 1 : 0] =
            part.machine;
  return std::any_of(machines.begin(), machines.end(), [](const auto& entry) {
    const auto [a, b] = entry.second;
    return a != kUnknown && b != kUnknown && a != b;
  });
}

// The same pair of stages in all replicas is one link. It is compared with the median of the other links; where that is
// itself far slower than quick links of the same kind (within a machine, or between two), it is compared with these.
std::vector<SlowTransfer> slow_links(const Trace& trace, const Transfers& t) {
  std::vector<double> medians;
  std::map<StagePair, double> median_link;
  std::map<StagePair, bool> across;
  for (const auto& [link, replicas] : t.links) {
    std::vector<double> values;
    for (const auto& [ns, dp] : replicas) values.push_back(ns);
    medians.push_back(median_link[link] = median_of(std::move(values)));
    across[link] = is_across(trace, link);
  }
  std::sort(medians.begin(), medians.end());
  std::array<std::vector<double>, 2> alike;  // medians of the links within a machine, and of those between two; sorted
  for (const auto& [link, ns] : median_link) alike[across[link] ? 1 : 0].push_back(ns);
  for (std::vector<double>& of_kind : alike) std::sort(of_kind.begin(), of_kind.end());
  std::vector<SlowTransfer> found;
  for (const auto& [link, replicas] : t.links) {
    // others_ns is the link's own median where there is no other link.
    SlowTransfer slow{link, 0, median_link[link], kUnknown, {}};
    if (medians.size() > 1) slow.others_ns = median_beside(medians, slow.others_ns);
    const std::vector<double>& kin = alike[across[link] ? 1 : 0];
    const auto own_place = std::lower_bound(kin.begin(), kin.end(), median_link[link]) - kin.begin();
    if (const double quick = usual_link_ns(kin, own_place); quick > 0 && slow.others_ns >= kFarSlower * quick)
      slow.others_ns = quick;
    std::vector<std::pair<double, int32_t>> own;
    for (const auto& entry : replicas)
      if (entry.first > kSlowLinkRatio * slow.others_ns && entry.first > 0) own.push_back(entry);
    if (own.empty()) continue;
    if (own.size() == 1 && replicas.size() > 1) slow.dp = own[0].second;
    for (const auto& [ns, dp] : own) {
      slow.own_ns += ns / own.size();
      slow.factors[t.index.at({dp, link.first, link.second})] = slow.others_ns / ns;
    }
    found.push_back(std::move(slow));
  }
  std::stable_sort(found.begin(), found.end(), [](const SlowTransfer& a, const SlowTransfer& b) {
    return a.own_ns - a.others_ns > b.own_ns - b.others_ns;
  });
  return found;
}

// How long each edge's messages take when they are quick: their median or, where times follow a shape (slower from a
// step on, with every step, or in every n-th step), their time in the quick steps.
struct Quick {
  std::vector<double> ns;
  std::set<StagePair> shaped;
};
Quick quick_times(const CauseScene& scene, const Transfers& t, const std::vector<StagePair>& link_of, double min_ns) {
  const StepGraph& g = scene.graph;
  Quick quick{t.median_ns, {}};
  std::map<StagePair, size_t> links;
  std::vector<size_t> number;  // for each edge the number of its link
  for (const StagePair& link : link_of) number.push_back(links.try_emplace(link, links.size()).first->second);
  std::vector<std::vector<double>> all(links.size() * g.steps.size());  // by link, then step of the graph
  scene.each_op([&](uint32_t op, size_t step) {
    if (const uint32_t edge = (*t.edge_of)[op]; receives(g.kind[op]) && edge != CellTimes::kNone)
      all[number[edge] * g.steps.size() + step].push_back(g.dur_ns[op]);
  });
  for (const auto& [link, at] : links) {
    std::vector<double> by_step(g.steps.size(), kNaN);
    for (size_t step = 0; step < by_step.size(); ++step)
      if (std::vector<double>& own = all[at * by_step.size() + step]; !own.empty())
        by_step[step] = median_of(std::move(own));
    const Course course = course_of(by_step);
    if (!course.varies() || course.kind == CourseKind::kSome) continue;
    const auto [low, high] = std::minmax(course.low, course.high);
    if (high <= kSlowLinkRatio * low || high - low <= min_ns) continue;
    quick.shaped.insert(link);
    for (size_t edge = 0; edge < quick.ns.size(); ++edge)
      if (link_of[edge] == link) quick.ns[edge] = std::min(quick.ns[edge], std::max(low, 0.0));
  }
  return quick;
}

// Finds late messages by their recorded times. `slow` are links that are slow by their median; for them only messages
// that are late now and then are reported.
std::vector<LateTransfer> late_transfers(const CauseScene& scene, const Transfers& t, const std::set<StagePair>& slow) {
  const StepGraph& g = scene.graph;
  std::vector<LateTransfer> found;
  if (g.source != GraphSource::kOperations && !g.messages_recorded) return found;
  std::vector<double> cells;
  scene.each_op([&](uint32_t op, size_t) {
    if (is_compute(g.kind[op])) cells.push_back(g.dur_ns[op]);
  });
  if (cells.empty()) return found;
  const double least = kLongMessage * median_of(std::move(cells));
  struct Late {
    int64_t count = 0, of = 0;
  };
  using At = std::tuple<int32_t, CellKind, int32_t, int32_t>;  // part, kind, micro-batch, chunk
  struct OfLink {
    Late all;
    std::map<std::pair<uint32_t, size_t>, Late> by_edge;  // key: edge and step of the graph
    std::set<size_t> steps;
    std::vector<double> lengths;  // of late ones
    std::set<At> places;          // of late ones
    int32_t part = kUnknown;      // of the last late one
  };
  std::vector<StagePair> link_of(t.index.size());
  std::vector<int32_t> dp_of(t.index.size());
  for (const auto& [edge, number] : t.index) {
    link_of[number] = {std::get<1>(edge), std::get<2>(edge)};
    dp_of[number] = std::get<0>(edge);
  }
  const Quick quick = quick_times(scene, t, link_of, least);
  const auto excess = [&g, &t, &quick, least](uint32_t op) {
    const uint32_t edge = (*t.edge_of)[op];
    if (edge == CellTimes::kNone || std::isnan(quick.ns[edge])) return 0.0;
    const double more = g.dur_ns[op] - quick.ns[edge];
    return more > least ? more : 0.0;
  };
  std::map<StagePair, OfLink> links;
  scene.each_op([&](uint32_t op, size_t step) {
    const uint32_t edge = (*t.edge_of)[op];
    if (!receives(g.kind[op]) || edge == CellTimes::kNone) return;
    OfLink& link = links[link_of[edge]];
    Late& of_edge = link.by_edge[{edge, step}];
    link.steps.insert(step);
    ++link.all.of, ++of_edge.of;
    const double ns = excess(op);
    if (!(ns > 0)) return;
    ++link.all.count, ++of_edge.count;
    link.lengths.push_back(ns);
    link.places.emplace(g.part[op], g.kind[op], g.micro_batch[op], g.chunk[op]);
    link.part = g.part[op];
  });
  for (const auto& [link, of_link] : links) {
    const Late& all = of_link.all;
    if (all.count < kMinLateCells) continue;
    // Steps in which the link is slow, in all replicas or in one.
    int64_t in_whole = 0;
    std::set<size_t> whole_steps;
    std::set<uint32_t> late_edges;
    for (const auto& [at, late] : of_link.by_edge) {
      if (late.count > 0) late_edges.insert(at.first);
      if (late.count < kMinLateCells || late.count < kMaxOfStepsMessages * late.of) continue;
      whole_steps.insert(at.second), in_whole += late.count;
    }
    const int64_t whole = whole_steps.size();
    const bool often = all.count > kMaxLate * all.of;
    const bool in_steps = in_whole >= kInWholeSteps * all.count;
    if ((often || in_steps) && slow.contains(link)) continue;
    // Loss of packets knows no places: messages that are late at the same places of every step queue behind others.
    const bool at_places = 2 * all.count >= std::ssize(of_link.steps) * std::ssize(of_link.places);
    if (!often && !in_steps && at_places) continue;
    std::vector<double> to_median(t.index.size(), kNaN), medians, own;  // to_median: for each edge of this link
    for (const auto& [edge, number] : t.index) {
      if (std::isnan(quick.ns[number])) continue;
      (link_of[number] == link ? own : medians).push_back(quick.ns[number]);
      if (link_of[number] == link) to_median[number] = quick.ns[number];
    }
    LateTransfer one{.link = link};
    one.slow = often || in_steps;
    one.shaped = one.slow && quick.shaped.contains(link);
    one.part = of_link.part;
    if (one.slow && late_edges.size() == 1 && g.dp_count > 1) one.dp = dp_of[*late_edges.begin()];
    one.count = all.count, one.of = all.of;
    one.whole_steps = whole, one.steps = of_link.steps.size();
    one.each_ns = mean_of(of_link.lengths);
    one.lengths = LateLengths(of_link.lengths);
    if (one.slow) {
      one.others_ns = median_of(medians.empty() || one.shaped ? own : medians);
      one.own_ns = median_of(own) + one.each_ns;
      one.certain = whole < one.steps && (all.count >= kMinCertainMessages || whole >= kMinWholeSteps);
    }
    one.without = [edges = t.edge_of, to_median = std::move(to_median), max_ns = t.max_ns, least](
                      uint32_t op, double& dur, double&) {
      const uint32_t edge = (*edges)[op];
      if (edge == CellTimes::kNone || dur > kMaxOfUsual * max_ns[edge]) return;
      if (dur - to_median[edge] > least) dur = to_median[edge];
    };
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace

LinkTimes::LinkTimes(const CauseScene& scene)
    : all(fair_transfers(scene, scene.measured<StartReasons>().late_receivers)), slow(slow_links(scene.trace, all)) {
  std::set<StagePair> links;
  for (const SlowTransfer& one : slow) links.insert(one.link);
  late = late_transfers(scene, all, links);
}

bool LinkTimes::slow_in_nearly_every_step(const CauseScene& scene, const SlowTransfer& link) const {
  const Transfers& t = all;
  if (!t.recorded) return false;
  int64_t steps = 0, slow_steps = 0, slow_ones = 0;
  // For each step: slow messages, all messages.
  std::vector<std::pair<int64_t, int64_t>> messages(scene.graph.steps.size());
  scene.each_op([&](uint32_t op, size_t step) {
    const uint32_t edge = (*t.edge_of)[op];
    if (!receives(scene.graph.kind[op]) || edge == CellTimes::kNone || !link.factors.contains(edge)) return;
    messages[step].first += scene.graph.dur_ns[op] > kSlowLinkRatio * link.others_ns, ++messages[step].second;
  });
  for (const auto& [slow_one, of] : messages) {
    if (of == 0) continue;
    ++steps, slow_ones += slow_one;
    slow_steps += slow_one >= kMaxOfStepsMessages * of;
  }
  return steps > 1 && slow_ones >= kMinCertainMessages && slow_steps >= kInWholeSteps * steps;
}

std::map<uint32_t, double> LinkTimes::held_up(const CauseScene& scene, const SlowTransfer& link) const {
  std::map<uint32_t, double> held;
  const auto& sends = scene.measured<StartReasons>().starts.own_sends();
  if (!sends) return held;
  const StepGraph& g = scene.graph;
  for (const auto& [op, blocked] : sends->blocked) {
    const int32_t from = g.stage(op), to = (from + (blocked.forward ? 1 : g.stage_count - 1)) % g.stage_count;
    if (StagePair{from, to} != link.link) continue;
    const auto edge = all.index.find({g.dp(op), from, to});
    if (edge != all.index.end() && link.factors.contains(edge->second))
      held[op] = std::min(blocked.ns, link.own_ns - link.others_ns);
  }
  return held;
}

Place place_of(const StagePair& link, int32_t replica) {
  return {.kind = PlaceKind::kLink, .stage = link.second, .replica = replica, .from_stage = link.first};
}

}  // namespace stageline
