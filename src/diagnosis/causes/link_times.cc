#include "diagnosis/causes/link_times.h"

#include "diagnosis/causes/start_reasons.h"
#include "model/run_extent.h"
#include "pipeline/measure/links.h"

namespace stageline {
namespace {

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

// A message is late if it exceeds its link's median by this share of the median compute cell.
constexpr double kLongMessage = 0.1;
constexpr double kMaxLate = 0.3;  // share of a link's messages; where more are late, the link is slow
// Share of a link's messages in one step; where at least as many are late, the link is slow in that step.
constexpr double kMinOfStepsMessages = 0.5;
constexpr double kInWholeSteps = 0.8;        // minimum share of a link's late messages that such steps must hold
constexpr int64_t kMinCertainMessages = 16;  // fewer late ones may be noise
constexpr int64_t kMinAllSlow = 5;           // recorded messages of a link that are slow without exception

// Numbers the edges that a block of operations meets. A part has few neighbours, so the last ones met are tried before
// all.
class BlockEdges {
 public:
  // Returns the block's own number of the edge of a message; kNone where an operation is none, or shows little of it.
  uint32_t number_of(const CauseScene& scene, const LateSends& sends, uint32_t op) {
    const StepGraph& g = scene.graph;
    if (!is_message(g.kind[op]) || g.stage(op) == kUnknown) return CellTimes::kNone;
    recorded_ = recorded_ || g.cell[op] != kNoCell;
    if (sends.hidden(op)) return CellTimes::kNone;
    const int32_t other = other_end_read(g, op, scene.times.chunks() > 1);
    if (other == kUnknown) return CellTimes::kNone;
    const bool in = is_receive(g.kind[op]);
    const size_t part = g.part[op];
    if (known_.empty()) known_.resize(g.stage_of.size()), oldest_.resize(g.stage_of.size());
    auto& known = known_[part];
    auto at = std::ranges::find_if(
        known, [&](const Known& k) { return k.edge != CellTimes::kNone && k.other == other && k.in == in; });
    if (at == known.end()) {
      const ReplicaLink edge =
          in ? ReplicaLink{g.dp(op), other, g.stage(op)} : ReplicaLink{g.dp(op), g.stage(op), other};
      const auto [number, fresh] = index_.try_emplace(edge, static_cast<uint32_t>(index_.size()));
      at = known.begin() + oldest_[part];
      oldest_[part] = static_cast<uint8_t>((oldest_[part] + 1) % known.size());
      *at = {other, in, number->second};
    }
    return at->edge;
  }

  // Adds the block's edges to those of all blocks, and keeps their numbers there.
  void merge_into(Transfers& t) {
    t.recorded = t.recorded || recorded_;
    edge_.resize(index_.size());
    for (const auto& [edge, number] : index_)
      edge_[number] = t.index.try_emplace(edge, static_cast<uint32_t>(t.index.size())).first->second;
  }
  uint32_t merged(uint32_t number) const { return edge_[number]; }

 private:
  struct Known {
    int32_t other = kUnknown;
    bool in = false;
    uint32_t edge = CellTimes::kNone;
  };
  std::vector<std::array<Known, 4>> known_;  // for each part
  std::vector<uint8_t> oldest_;
  std::map<ReplicaLink, uint32_t> index_;
  std::vector<uint32_t> edge_;  // for each of the block's own numbers, an index of Transfers::index
  bool recorded_ = false;       // some message was recorded
};

void number_edges(const CauseScene& scene, const LateSends& sends, Transfers& t) {
  const StepGraph& g = scene.graph;
  t.edge_of = std::make_shared<RawValues<uint32_t>>();
  RawValues<uint32_t>& edge_of = *t.edge_of;
  edge_of.resize(g.size());
  const OpBlocks blocks(g.size(), 4 * g.stage_of.size());
  std::vector<BlockEdges> of_block(blocks.size());
  blocks.each([&](size_t b, uint32_t op) { edge_of[op] = of_block[b].number_of(scene, sends, op); });
  for (BlockEdges& block : of_block) block.merge_into(t);
  blocks.each([&](size_t b, uint32_t op) {
    if (edge_of[op] != CellTimes::kNone) edge_of[op] = of_block[b].merged(edge_of[op]);
  });
  t.recorded = t.recorded || g.messages_recorded;
}

// Returns the transfers of all links, without the delays of late ranks where only gaps between cells were recorded.
Transfers fair_transfers(const CauseScene& scene, const LateWorkers& late) {
  const StepGraph& g = scene.graph;
  const LateSends& sends = scene.measured<LateSends>();
  Transfers t;
  number_edges(scene, sends, t);
  const RawValues<uint32_t>& edge_of = *t.edge_of;
  std::map<StagePair, double> late_of;  // key: replica, stage
  for (const auto& [worker, ns] : late)
    late_of[{scene.times.workers()[worker].dp, scene.times.workers()[worker].stage}] = ns;
  OpValues received(
      {{0, static_cast<uint32_t>(g.size())}}, t.index.size(),
      [&](uint32_t op) { return is_receive(g.kind[op]) ? edge_of[op] : OpValues::kNone; },
      [&](uint32_t op) {
        // A gap between cells includes the delay of a late rank, which is not the link's.
        const auto by =
            !t.recorded && !late_of.empty() ? late_of.find({std::max(g.dp(op), 0), g.stage(op)}) : late_of.end();
        return std::max(0.0, sends.transfer_ns(g, op) - (by == late_of.end() ? 0 : by->second));
      });
  const std::vector<double> medians = t.median_ns = received.take_medians();
  t.max_ns.assign(t.index.size(), 0);
  scene.each_op([&](uint32_t op, size_t) {
    if (is_receive(g.kind[op]) && edge_of[op] != CellTimes::kNone)
      t.max_ns[edge_of[op]] = std::max(t.max_ns[edge_of[op]], sends.transfer_ns(g, op));
  });
  for (const auto& [edge, number] : t.index)
    if (!std::isnan(medians[number]))
      t.links[{std::get<1>(edge), std::get<2>(edge)}].emplace_back(medians[number], std::get<0>(edge));
  return t;
}

// The same pair of stages in all replicas is one link. It is compared with the median of the other links. If that is
// itself far slower than fast links of the same kind (within a machine, or between two), these are used instead.
std::vector<SlowTransfer> slow_links(const Trace& trace, const Transfers& t) {
  std::vector<double> medians;
  std::map<StagePair, double> median_link;
  std::map<StagePair, bool> across;
  for (const auto& [link, replicas] : t.links) {
    auto values = mapped<double>(replicas, [&](const auto& entry) { return entry.first; });
    medians.push_back(median_link[link] = median_of(std::move(values)));
    across[link] = link_machines(trace, link.first, link.second) == LinkMachines::kSeveral;
  }
  std::ranges::sort(medians);
  std::array<std::vector<double>, 2> alike;  // medians of the links within a machine, and of those between two; sorted
  for (const auto& [link, ns] : median_link) alike[across[link] ? 1 : 0].push_back(ns);
  for (std::vector<double>& of_kind : alike) std::ranges::sort(of_kind);
  std::vector<SlowTransfer> found;
  for (const auto& [link, replicas] : t.links) {
    // others_ns is the link's own median where there is no other link.
    SlowTransfer slow{link, 0, median_link[link], kUnknown, {}};
    if (medians.size() > 1) slow.others_ns = median_beside(medians, slow.others_ns);
    const std::vector<double>& kin = alike[across[link] ? 1 : 0];
    const auto own_place = std::ranges::lower_bound(kin, median_link[link]) - kin.begin();
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
  sort_stably(found, std::greater(), [](const SlowTransfer& a) { return a.own_ns - a.others_ns; });
  return found;
}

// The usual time of each edge's messages, which is their median. Where times follow a shape (slower from a step on,
// with every step, or in every n-th step), it is their time in the fast steps.
struct Quick {
  std::vector<double> ns;
  std::set<StagePair> shaped;
};
Quick quick_times(const CauseScene& scene, const Transfers& t, const std::vector<StagePair>& link_of, double min_ns) {
  const StepGraph& g = scene.graph;
  const LateSends& sends = scene.measured<LateSends>();
  Quick quick{t.median_ns, {}};
  std::map<StagePair, size_t> links;
  std::vector<size_t> number;  // for each edge the number of its link
  for (const StagePair& link : link_of) number.push_back(links.try_emplace(link, links.size()).first->second);
  std::vector<std::vector<double>> all(links.size() * g.steps.size());  // by link, then step of the graph
  scene.each_op([&](uint32_t op, size_t step) {
    if (const uint32_t edge = (*t.edge_of)[op]; is_receive(g.kind[op]) && edge != CellTimes::kNone)
      all[number[edge] * g.steps.size() + step].push_back(sends.transfer_ns(g, op));
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

// Calls body(op, link, edge, ns) for the operations that wait for their rank's own send on a known edge.
template <class Body> void each_blocked(const CauseScene& scene, const Transfers& t, const Body& body) {
  const auto& sends = scene.measured<StartReasons>().starts.rank_sends();
  if (!sends) return;
  const StepGraph& g = scene.graph;
  for (const auto& [op, blocked] : sends->blocked) {
    const int32_t from = g.stage(op), to = (from + (blocked.forward ? 1 : g.stage_count - 1)) % g.stage_count;
    if (const auto edge = t.index.find({g.dp(op), from, to}); edge != t.index.end())
      body(op, StagePair{from, to}, edge->second, blocked.ns);
  }
}

struct LateCount {
  int64_t count = 0, of = 0;
};

// The messages of one link, and those of them that are late.
struct LinkMessages {
  using At = std::tuple<int32_t, CellKind, int32_t, int32_t>;  // part, kind, micro-batch, chunk
  LateCount all;
  std::map<std::pair<uint32_t, size_t>, LateCount> by_edge;  // key: edge and step of the graph
  std::set<size_t> steps;
  std::vector<double> lengths;   // of late ones
  std::map<At, int64_t> places;  // of late ones: how many
  int32_t part = kUnknown;       // of the last late one
};

// The steps in which a link is slow, in all replicas or in one.
struct SlowSteps {
  int64_t count = 0, late = 0;    // steps; late messages in them
  std::set<uint32_t> late_edges;  // edges with late messages in any step
};
SlowSteps slow_steps(const LinkMessages& link) {
  SlowSteps slow;
  std::set<size_t> steps;
  for (const auto& [at, late] : link.by_edge) {
    if (late.count > 0) slow.late_edges.insert(at.first);
    if (late.count < kMinLateCells || late.count < kMinOfStepsMessages * late.of) continue;
    steps.insert(at.second), slow.late += late.count;
  }
  slow.count = steps.size();
  return slow;
}

// Finds late messages by their recorded times.
class LateMessages {
 public:
  // `min_ns` is the time by which a message must exceed the fast ones of its link.
  LateMessages(const CauseScene& scene, const Transfers& t, double min_ns)
      : scene_(scene), g_(scene.graph), sends_(scene.measured<LateSends>()), t_(t), min_ns_(min_ns),
        link_of_(t.index.size()), dp_of_(t.index.size()) {
    for (const auto& [edge, number] : t.index) {
      link_of_[number] = {std::get<1>(edge), std::get<2>(edge)};
      dp_of_[number] = std::get<0>(edge);
    }
    quick_ = quick_times(scene, t, link_of_, min_ns);
  }

  // `slow` are links that are slow by their median; for them only single late messages are reported.
  std::vector<LateTransfer> find(const std::set<StagePair>& slow) const {
    std::vector<LateTransfer> found;
    for (const auto& [link, messages] : by_link()) {
      const LateCount& all = messages.all;
      if (all.count < kMinLateCells && !costs_enough(messages)) continue;
      const SlowSteps steps = slow_steps(messages);
      const bool often = all.count > kMaxLate * all.of;
      const bool in_steps = steps.late >= kInWholeSteps * all.count;
      if ((often || in_steps) && slow.contains(link)) continue;
      if (often || in_steps || !at_same_places(messages))
        found.push_back(late_transfer(link, messages, steps, often || in_steps));
    }
    return found;
  }

 private:
  // A single message may take as long as many that are a little late.
  bool costs_enough(const LinkMessages& link) const {
    double late_ns = 0, steps_ns = 0;
    for (const double ns : link.lengths) late_ns += ns;
    for (const size_t step : link.steps) steps_ns += static_cast<double>(g_.steps[step].span_ns);
    return late_ns > 0 && late_ns >= kMinLost * steps_ns;
  }

  // Lost packets hit random places. Messages that are late at the same places in more than half of the steps queue
  // behind others.
  static bool at_same_places(const LinkMessages& link) {
    int64_t again = 0;
    for (const auto& [at, count] : link.places)
      if (count > 1 && 2 * count > std::ssize(link.steps)) again += count;
    return 2 * again >= link.all.count;
  }

  // Returns by how much a message exceeds the fast ones of its link; 0 where it is not late.
  double excess_ns(uint32_t op) const {
    const double more = sends_.transfer_ns(g_, op) - quick_.ns[(*t_.edge_of)[op]];
    return more > min_ns_ ? more : 0.0;  // NaN: the link has no usual time
  }

  std::map<StagePair, LinkMessages> by_link() const {
    std::map<StagePair, LinkMessages> links;
    scene_.each_op([&](uint32_t op, size_t step) {
      const uint32_t edge = (*t_.edge_of)[op];
      if (!is_receive(g_.kind[op]) || edge == CellTimes::kNone) return;
      LinkMessages& link = links[link_of_[edge]];
      LateCount& of_edge = link.by_edge[{edge, step}];
      link.steps.insert(step);
      ++link.all.of, ++of_edge.of;
      const double ns = excess_ns(op);
      if (!(ns > 0)) return;
      ++link.all.count, ++of_edge.count;
      link.lengths.push_back(ns);
      ++link.places[{g_.part[op], g_.kind[op], g_.micro_batch[op], g_.chunk[op]}];
      link.part = g_.part[op];
    });
    return links;
  }

  LateTransfer late_transfer(const StagePair& link, const LinkMessages& messages, const SlowSteps& steps,
                             bool slow) const {
    std::vector<double> to_quick(t_.index.size(), kNaN), others, here;  // to_quick: for each edge of this link
    for (size_t edge = 0; edge < to_quick.size(); ++edge) {
      if (std::isnan(quick_.ns[edge])) continue;
      (link_of_[edge] == link ? here : others).push_back(quick_.ns[edge]);
      if (link_of_[edge] == link) to_quick[edge] = quick_.ns[edge];
    }
    LateTransfer one{.link = link};
    one.slow = slow;
    one.shaped = slow && quick_.shaped.contains(link);
    one.part = messages.part;
    if (slow && steps.late_edges.size() == 1 && g_.dp_count > 1) one.dp = dp_of_[*steps.late_edges.begin()];
    one.count = messages.all.count, one.of = messages.all.of;
    one.whole_steps = steps.count, one.steps = messages.steps.size();
    one.each_ns = mean_of(messages.lengths);
    one.lengths = LateLengths(messages.lengths);
    if (slow) {
      one.others_ns = median_of(others.empty() || one.shaped ? here : others);
      one.own_ns = median_of(here) + one.each_ns;
      one.certain = steps.count < one.steps && (one.count >= kMinCertainMessages || steps.count >= kMinWholeSteps);
    }
    one.held = held_up(link);
    one.without = [edges = t_.edge_of, to_quick = std::move(to_quick), held = one.held, max_ns = t_.max_ns,
                   min_ns = min_ns_, &sends = sends_](uint32_t op, double& dur, double& delay) {
      if (const auto own = held.find(op); own != held.end()) delay = std::max(0.0, delay - own->second);
      const uint32_t edge = (*edges)[op];
      const double late = std::min(dur, sends.late_ns(op));
      if (edge == CellTimes::kNone || dur - late > kMaxOfUsual * max_ns[edge]) return;
      if (dur - late - to_quick[edge] > min_ns) dur = to_quick[edge] + late;
    };
    return one;
  }

  std::map<uint32_t, double> held_up(const StagePair& link) const {
    std::map<uint32_t, double> held;
    each_blocked(scene_, t_, [&](uint32_t op, const StagePair& way, uint32_t edge, double ns) {
      if (way == link && ns - quick_.ns[edge] > min_ns_) held[op] = ns - quick_.ns[edge];
    });
    return held;
  }

  const CauseScene& scene_;
  const StepGraph& g_;
  const LateSends& sends_;
  const Transfers& t_;
  double min_ns_;
  std::vector<StagePair> link_of_;  // for each edge
  std::vector<int32_t> dp_of_;      // for each edge
  Quick quick_;
};

std::vector<LateTransfer> late_transfers(const CauseScene& scene, const Transfers& t, const std::set<StagePair>& slow) {
  const StepGraph& g = scene.graph;
  if (g.source != GraphSource::kOperations && !g.messages_recorded) return {};
  std::vector<double> cells;
  scene.each_op([&](uint32_t op, size_t) {
    if (is_compute(g.kind[op])) cells.push_back(g.dur_ns[op]);
  });
  if (cells.empty()) return {};
  return LateMessages(scene, t, kLongMessage * median_of(std::move(cells))).find(slow);
}

}  // namespace

int32_t other_end_read(const StepGraph& g, uint32_t op, bool chunked) {
  const int32_t other = other_end(g, op), apart = std::abs(other - g.stage(op));
  const bool neighbours = apart == 1 || (chunked && apart == g.stage_count - 1);
  return other != kUnknown && neighbours ? other : kUnknown;
}

LinkTimes::LinkTimes(const CauseScene& scene)
    : all(fair_transfers(scene, scene.measured<StartReasons>().late_receivers)), slow(slow_links(scene.trace, all)) {
  std::set<StagePair> links = mapped<std::set>(slow, &SlowTransfer::link);
  late = late_transfers(scene, all, links);
}

bool LinkTimes::slow_in_nearly_every_step(const CauseScene& scene, const SlowTransfer& link) const {
  const Transfers& t = all;
  const LateSends& sends = scene.measured<LateSends>();
  int64_t steps = 0, slow_steps = 0, slow_ones = 0, all_ones = 0;
  // For each step: slow messages, all messages.
  std::vector<std::pair<int64_t, int64_t>> messages(scene.graph.steps.size());
  scene.each_op([&](uint32_t op, size_t step) {
    const uint32_t edge = (*t.edge_of)[op];
    if (!is_receive(scene.graph.kind[op]) || edge == CellTimes::kNone || !link.factors.contains(edge)) return;
    messages[step].first += sends.transfer_ns(scene.graph, op) > kSlowLinkRatio * link.others_ns,
        ++messages[step].second;
  });
  for (const auto& [slow_one, of] : messages) {
    if (of == 0) continue;
    ++steps, slow_ones += slow_one, all_ones += of;
    slow_steps += slow_one >= kMinOfStepsMessages * of;
  }
  const bool enough =
      slow_ones >= kMinCertainMessages || (t.recorded && slow_ones == all_ones && slow_ones >= kMinAllSlow);
  return steps > 0 && enough && slow_steps >= kInWholeSteps * steps;
}

std::map<uint32_t, double> LinkTimes::held_up(const CauseScene& scene, const SlowTransfer& link) const {
  std::map<uint32_t, double> held;
  each_blocked(scene, all, [&](uint32_t op, const StagePair& way, uint32_t edge, double ns) {
    if (way != link.link) return;
    if (const auto factor = link.factors.find(edge); factor != link.factors.end()) held[op] = ns * (1 - factor->second);
  });
  return held;
}

Place place_of(const StagePair& link, int32_t replica) {
  return {.kind = PlaceKind::kLink, .stage = link.second, .replica = replica, .from_stage = link.first};
}

}  // namespace stageline
