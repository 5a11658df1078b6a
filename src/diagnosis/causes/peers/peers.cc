// Ranks that meet inside cells: uneven experts, longer sequences of some, slow exchanges, pauses between them.
// Finds causes of waits between ranks inside cells, where all meetings were recorded: their own work and their
// exchanges, each compared with the peers'.
#include "diagnosis/causes/peers/peers.h"

#include "diagnosis/causes/telling.h"

namespace stageline {
namespace {

constexpr double kLongExchange = 1.5;    // a rank's transfers to its peers', a stage's to the other stages'
constexpr double kMinExchange = 0.005;   // share of the steps that they must take longer
constexpr double kMinUnevenCost = 0.02;  // even routing at random costs a little, too
constexpr double kMostly = 0.5;

double step_sum(const CauseScene& scene) {
  double sum = 0;
  for (size_t s = 0; s < scene.graph.steps.size(); ++s)
    if (scene.counts[s]) sum += static_cast<double>(scene.graph.steps[s].span_ns);
  return sum;
}

Suspect suspect_of(PeersOwn own) {
  Suspect suspect;
  suspect.cause.kind = &peers_cause;
  suspect.cause.own = own;
  suspect.cause.certain = true;
  return suspect;
}

void name_rank(const CauseScene& scene, int32_t part, Cause& cause) {
  cause.figures.rank = scene.trace.parts[part].rank, cause.figures.stage = scene.graph.stage_of[part];
}

Place ranks_place(const CauseScene& scene, const std::set<int32_t>& parts, PlaceKind kind) {
  Place place{.kind = kind};
  for (const int32_t part : parts) place.ranks.push_back(scene.trace.parts[part].rank);
  std::ranges::sort(place.ranks);
  if (parts.size() == 1) place.stage = scene.graph.stage_of[*parts.begin()];
  return place;
}

void suspect_late_peers(const CauseScene& scene, std::vector<Suspect>& out) {
  const PeerWork::Pauses& pauses = scene.peers.pauses();
  if (pauses.at.empty()) return;
  std::set<int32_t> parts = mapped<std::set>(pauses.of_part, [&](const auto& entry) { return entry.first; });
  const auto max = std::ranges::max_element(pauses.of_part, {}, &std::pair<const int32_t, double>::second);
  if (max->second >= kEverywhere * pauses.ns) parts = {max->first};
  Suspect suspect = suspect_of({.fault = PeerFault::kPauses});
  Cause& cause = suspect.cause;
  const auto count = std::ssize(pauses.at);
  cause.figures = {
      .each_ns = pauses.ns / static_cast<double>(count), .count = count, .of = std::ssize(scene.peers.cells().cells)};
  cause.places = {ranks_place(scene, parts, PlaceKind::kHost)};
  cause.certain = count >= kMinLateCells;
  if (parts.size() == 1) name_rank(scene, *parts.begin(), cause);
  suspect.without = CauseWorld::inside([&peers = scene.peers](const PeerCell& cell, std::span<double> own, auto) {
    for (size_t j = 0; j < own.size(); ++j) own[j] *= peers.unpaused()[cell.first + j];
  });
  out.push_back(std::move(suspect));
}

void suspect_experts(const CauseScene& scene, std::vector<Suspect>& out) {
  const PeerWork::Experts& experts = scene.peers.experts();
  const bool lasting = experts.part != kUnknown && experts.lasting >= kMostly;
  if (!lasting && experts.correlation < PeerWork::kAgree) return;
  Suspect suspect = suspect_of({.fault = lasting ? PeerFault::kExperts : PeerFault::kRouting,
                                .lasting = experts.lasting,
                                .correlation = experts.correlation,
                                .layer = experts.layer});
  if (lasting) {
    name_rank(scene, experts.part, suspect.cause);
    suspect.cause.figures.ratio = experts.hottest.value;
    suspect.cause.places = {ranks_place(scene, {experts.part}, PlaceKind::kRanks)};
  }
  suspect.without = CauseWorld::inside([&peers = scene.peers](const PeerCell& cell, std::span<double> own, auto) {
    for (size_t j = 0; j < own.size(); ++j) own[j] *= peers.even()[cell.first + j];
  });
  out.push_back(std::move(suspect));
}

// All ranks of a replica have the same tokens: each alone wins little, because those of the next stage then count.
void suspect_sequences(const CauseScene& scene, std::vector<Suspect>& out) {
  std::map<int32_t, std::set<int32_t>> replicas;  // by replica: parts
  std::map<int32_t, size_t> all;
  for (size_t part = 0; part < scene.graph.dp_of.size(); ++part) ++all[scene.graph.dp_of[part]];
  for (const auto& [part, ratio] : scene.peers.sources()) replicas[scene.graph.dp_of[part]].insert(part);
  const auto add = [&](const std::set<int32_t>& parts, int32_t replica) {
    Suspect suspect = suspect_of({.fault = PeerFault::kSequences});
    Cause& cause = suspect.cause;
    for (const int32_t part : parts)
      cause.figures.ratio += scene.peers.sources().at(part).value / static_cast<double>(parts.size());
    cause.places = {ranks_place(scene, parts, replica == kUnknown ? PlaceKind::kRanks : PlaceKind::kReplicas)};
    cause.places.front().replica = replica;
    if (replica == kUnknown) name_rank(scene, *parts.begin(), cause);
    suspect.without = CauseWorld::inside([&scene, parts](const PeerCell& cell, std::span<double> own, auto) {
      const int32_t part = scene.graph.part[cell.op];
      if (!parts.contains(part)) return;
      for (size_t j = 0; j < own.size(); ++j)
        if (!scene.peers.cells().is_experts(j)) own[j] /= scene.peers.sources().at(part).value;
    });
    out.push_back(std::move(suspect));
  };
  for (const auto& [replica, parts] : replicas) {
    if (parts.size() > 1 && 2 * parts.size() > all[replica]) add(parts, replica);
    else
      for (const int32_t part : parts) add({part}, kUnknown);
  }
}

// The transfers of a set of ranks that meet, by rank in the order of their groups.
struct Exchanges {
  int32_t stage = kUnknown;
  uint32_t meets = 0;
  std::map<int32_t, std::vector<double>> of;  // by part
  std::vector<double> usual;                  // by meeting: of the ranks that are not slow
  double ns = 0;                              // their median
};

std::map<std::vector<int32_t>, Exchanges> exchanges_of(const CauseScene& scene) {
  const PeerCells& peers = scene.peers.cells();
  std::map<std::vector<int32_t>, Exchanges> all;
  for (const GraphGroup& group : peers.groups) {
    const std::span members(&peers.cells[group.begin], group.end - group.begin);
    if (!scene.counts[step_of(scene.graph, members.front().op)]) continue;
    auto parts = mapped<int32_t>(members, [&](const PeerCell& cell) { return scene.graph.part[cell.op]; });
    Exchanges& set = all[parts];
    set.stage = scene.graph.stage_of[parts.front()], set.meets = members.front().meets;
    for (const PeerCell& cell : members)
      for (const double ns : peers.transfers(cell)) set.of[scene.graph.part[cell.op]].push_back(ns);
  }
  return all;
}

// The median of the other ranks' transfers in each meeting.
std::vector<double> others_of(const Exchanges& set, int32_t part) {
  std::vector<double> others;
  for (size_t k = 0; k < set.of.at(part).size(); ++k) {
    std::vector<double> beside;
    for (const auto& [other, values] : set.of)
      if (other != part && k < values.size()) beside.push_back(values[k]);
    others.push_back(beside.empty() ? 0 : median_of(std::move(beside)));
  }
  return others;
}

void suspect_link(const CauseScene& scene, const Exchanges& set, int32_t part, const std::vector<double>& others,
                  std::vector<Suspect>& out) {
  const double own_ns = sum_over<double>(set.of.at(part)), others_ns = sum_over<double>(others);
  const auto count = static_cast<double>(others.size());
  Suspect suspect = suspect_of({.fault = PeerFault::kLink, .own_ns = own_ns / count, .others_ns = others_ns / count});
  name_rank(scene, part, suspect.cause);
  suspect.cause.figures.ratio = own_ns / others_ns;
  suspect.cause.places = {ranks_place(scene, {part}, PlaceKind::kCollective)};
  suspect.without = CauseWorld::inside(
      [&scene, part, ratio = own_ns / others_ns](const PeerCell& cell, std::span<double>, std::span<double> transfers) {
        if (scene.graph.part[cell.op] != part) return;
        for (double& ns : transfers) ns /= ratio;
      });
  out.push_back(std::move(suspect));
}

// Exchanges that take longer once all have come: on one rank alone by its link, on all ranks of a stage by their
// network.
void suspect_exchanges(const CauseScene& scene, std::vector<Suspect>& out) {
  std::map<std::vector<int32_t>, Exchanges> all = exchanges_of(scene);
  const double min_ns = kMinExchange * step_sum(scene);
  for (auto& [parts, set] : all) {
    std::vector<double> usual;
    for (const int32_t part : parts) {
      const std::vector<double> others = others_of(set, part);
      const double own_ns = sum_over<double>(set.of.at(part)), others_ns = sum_over<double>(others);
      const bool is_long = own_ns >= kLongExchange * others_ns && own_ns - others_ns >= min_ns && others_ns > 0;
      if (is_long) suspect_link(scene, set, part, others, out);
      const std::vector<double>& values = is_long ? others : set.of.at(part);
      usual.insert(usual.end(), values.begin(), values.end());
    }
    set.ns = median_of(std::move(usual));
  }
  for (const auto& [parts, set] : all) {
    std::vector<double> beside;
    for (const auto& [other, its] : all)
      if (its.stage != set.stage && its.meets == set.meets) beside.push_back(its.ns);
    const double others_ns = beside.empty() ? 0 : median_of(std::move(beside));
    const auto count = static_cast<double>(set.of.begin()->second.size());
    if (!(others_ns > 0) || set.ns < kLongExchange * others_ns || (set.ns - others_ns) * count < min_ns) continue;
    const double ratio = set.ns / others_ns;
    Suspect suspect = suspect_of({.fault = PeerFault::kCollective, .own_ns = set.ns, .others_ns = others_ns});
    suspect.cause.figures.ratio = ratio, suspect.cause.figures.stage = set.stage;
    suspect.cause.places = {ranks_place(scene, {parts.begin(), parts.end()}, PlaceKind::kCollective)};
    suspect.cause.places.front().stage = set.stage;
    suspect.without = CauseWorld::inside([&scene, members = std::set(parts.begin(), parts.end()), ratio](
                                             const PeerCell& cell, std::span<double>, std::span<double> transfers) {
      if (!members.contains(scene.graph.part[cell.op])) return;
      for (double& ns : transfers) ns /= ratio;
    });
    out.push_back(std::move(suspect));
  }
}

}  // namespace

void suspect_peers(CauseScene& scene, std::vector<Suspect>& out) {
  if (!scene.peers.any()) return;
  suspect_late_peers(scene, out);
  if (scene.peers.cells().experts) {
    suspect_experts(scene, out);
    suspect_sequences(scene, out);
  }
  suspect_exchanges(scene, out);
}

CauseUse judge_peers(Cause& cause, const JudgeFacts& facts) {
  const PeerFault fault = cause.own.as<PeersOwn>().fault;
  const bool uneven = fault == PeerFault::kExperts || fault == PeerFault::kRouting;
  return uneven && cause.price.lost_ns < kMinUnevenCost * facts.step_ns ? CauseUse::kDrop : CauseUse::kCause;
}

Telling tell_peers(std::span<const Cause* const> causes, const TellContext& context) {
  constexpr size_t kShown = 8;
  const Cause& c = *causes.front();
  const auto& own = c.own.as<PeersOwn>();
  Args args = context.args(c);
  auto ranks = mapped<std::string>(c.place().ranks, [&](const int32_t rank) { return std::to_string(rank); });
  args.set("group", some_of(ranks, kShown)).set("layer", int64_t{own.layer});
  args.set("stage", int64_t{c.figures.stage}).flag("paired", own.correlation > 0);
  args.set("lasting", percent(own.lasting)).set("correlation", fixed(own.correlation, 2));
  args.set("own", human_duration(own.own_ns)).set("others", human_duration(own.others_ns));
  Telling telling;
  switch (own.fault) {
    case PeerFault::kExperts:
      telling = say_cause("data.uneven", "peers.experts", args);
      telling.key = "experts";
      break;
    case PeerFault::kRouting:
      telling = say_cause("data.uneven", "peers.routing", args);
      telling.key = "routing";
      break;
    case PeerFault::kSequences:
      telling = say_cause("sequence.long", "peers.sequences", args);
      telling.key = "sequences";
      break;
    case PeerFault::kLink:
      telling = say_cause("link.slow", "peers.link", args);
      telling.key = "link:" + std::to_string(c.figures.rank);
      break;
    case PeerFault::kCollective:
      telling = say_cause("link.slow", "peers.collective", args);
      telling.key = "collective:" + std::to_string(c.figures.stage);
      break;
    case PeerFault::kPauses: telling = say_cause("host.pauses", "peers.pauses", args); break;
  }
  telling.assumption = {};
  telling.table = {"stragglers", "straggler-workers"};
  return telling;
}

}  // namespace stageline
