#include "profile/expected_transfer.h"

namespace stageline {
namespace {

#define BOARD(...)
constexpr Fabric kFabrics[] = {
#define FABRIC(name, peak, tuner, pair, switched, chips) {name, peak, tuner, pair, switched, Fabric::Chips::chips},
#include "profile/fabrics.def"
};

struct Board {
  std::string_view part;  // of the device's name
  std::string_view fabric;
};
#define FABRIC(...)
constexpr Board kBoards[] = {
#define BOARD(part, fabric) {part, fabric},
#include "profile/fabrics.def"
};

// Start-up of NCCL's kernels and one step's latency in µs, for the protocols LL, LL128 and Simple (graph/tuning.cc).
using ByProtocol = std::array<double, 3>;
constexpr ByProtocol kRingBase = {6.6, 14, 8.4}, kTreeBase = {6.8, 14, 8.4};
constexpr ByProtocol kNvlinkRing = {0.6, 1.9, 3.4}, kNvlinkTree = {0.6, 1.25, 4};
constexpr ByProtocol kPcieRing = {1, 2.5, 5.7}, kPcieTree = {1, 1.9, 4};
constexpr ByProtocol kNetRing = {2.7, 4, 14}, kNetTree = {5, 8.5, 14};
constexpr double kNetShare = 0.96;  // NCCL takes 12 GB/s for 100 Gbit/s

// The max. rate of LL in one host, by chips; the second and third numbers are for two and for more hosts.
constexpr std::array<ByProtocol, 5> kMaxLl = {
    {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}, {87.7, 22.5, 19}}};
// The share of its rate that a tree reaches, for messages of 64 B × 2^index.
constexpr std::array<std::array<double, 24>, 3> kTreeShare = {
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}}};

struct Sizes {
  explicit Sizes(const TransferRoute& route)
      : n(static_cast<double>(route.ranks)), hosts(static_cast<double>(route.hosts)), per_host(n / hosts),
        net(route.nic_gbps * per_host) {}
  double n, hosts, per_host;
  double net;  // GB/s of a host
};

double pair_rate(const TransferRoute& route, double links) {
  return route.fabric->pair_gbps > 0 ? route.fabric->pair_gbps : links;
}

// Estimates the time of a ring and of a tree, for one protocol.
class Tuner {
  using enum CollectiveKind;

 public:
  explicit Tuner(const TransferRoute& route) : route_(route), s_(route), pcie_(route.fabric->name.starts_with("pcie")) {
    const double links = route.fabric->tuner_gbps;
    ring_gbps_ = route.hosts == 1 ? links : std::min(links, s_.net * kNetShare);
    const auto chips = route.hosts == 1 ? route.fabric->chips : Fabric::Chips::kAmpere;
    max_ll_ = kMaxLl[static_cast<size_t>(chips)][static_cast<size_t>(std::min<int64_t>(route.hosts, 3) - 1)];
  }

  double ring_ns(size_t protocol, double bytes) const {
    const bool reduces = route_.kind == kAllReduce, across = route_.hosts > 1;
    const bool scatters = route_.kind == kAllGather || route_.kind == kReduceScatter;
    const double steps = reduces ? 2 * (s_.n - 1) : scatters ? s_.n - 1 : s_.n;
    const double net_steps = !across ? 0 : reduces ? 2 * (s_.hosts - 1) : s_.hosts - 1;
    const double rate = ByProtocol{std::min(max_ll_, ring_gbps_ * 0.5), ring_gbps_ * 0.92, ring_gbps_}[protocol];
    const ByProtocol& inside = pcie_ ? kPcieRing : kNvlinkRing;
    double us = kRingBase[protocol];
    if (route_.kind == kBroadcast || route_.kind == kReduce) {
      us += (across ? kNetRing : inside)[protocol];
    } else {
      const double min = across ? (protocol < 2 ? 1.0 : 3.0) : 0;
      us += (steps - net_steps) * std::max(inside[protocol], min);
      us += net_steps * (s_.per_host == 1 ? kNetTree : kNetRing)[protocol];
    }
    if (protocol == 2 && across && reduces) us *= 1.4;
    return us * 1000 + bytes / (rate * s_.n / steps);
  }

  double tree_ns(size_t protocol, int64_t bytes) const {
    const double links = ring_gbps_ * 0.92;
    double rate = ByProtocol{std::min(links / 3.8, max_ll_), links * (route_.hosts == 1 ? 7.0 / 9 : 120.0 / 128),
                             links}[protocol];
    const ByProtocol& inside = pcie_ ? kPcieTree : kNvlinkTree;
    const double us =
        kTreeBase[protocol] + 2 * ((s_.per_host - 1) * inside[protocol] + std::log2(s_.hosts) * kNetTree[protocol]);
    const int at = static_cast<int>(std::bit_width(static_cast<uint64_t>(bytes) >> 6)) - 1;
    if (at >= 0 && at < 23) rate *= kTreeShare[protocol][static_cast<size_t>(at)];
    return us * 1000 + static_cast<double>(bytes) / (rate * 0.5);
  }

  // All-reduce inside the switches of one host; infinite where there is none.
  double switch_ns(double bytes) const {
    const Fabric& fabric = *route_.fabric;
    if (route_.hosts > 1 || route_.ranks <= 4 || fabric.switch_gbps <= 0)
      return std::numeric_limits<double>::infinity();
    const double share = fabric.chips == Fabric::Chips::kHopper ? 0.85 : 0.74;
    const double bus = std::min(fabric.tuner_gbps * share * 15 / 16 * 2, fabric.switch_gbps);
    return 25'000 + bytes * bus_factor(kAllReduce, route_.ranks) / bus;
  }

 private:
  const TransferRoute& route_;
  const Sizes s_;
  const bool pcie_;
  double ring_gbps_ = 0, max_ll_ = 0;
};

}  // namespace

const Fabric* find_fabric(std::string_view name) {
  const auto found = std::ranges::find(kFabrics, name, &Fabric::name);
  return found == std::end(kFabrics) ? nullptr : found;
}

const Fabric* fabric_of_device(std::string_view device) {
  for (const std::string_view other : {"NVL", "PCIe", "GH200", "MIG"})
    if (device.find(other) != std::string_view::npos) return nullptr;
  for (const Board& board : kBoards)
    if (device.find(board.part) != std::string_view::npos) return find_fabric(board.fabric);
  return nullptr;
}

bool spans_hosts(std::string_view device) {
  return device.find("GB200") != std::string_view::npos || device.find("GB300") != std::string_view::npos;
}

double wire_ns(const TransferRoute& route, int64_t bytes) {
  using enum CollectiveKind;
  if (route.ranks < 2 || bytes <= 0) return 0;
  const Sizes s(route);
  const double size = static_cast<double>(bytes), peak = route.fabric->peak_gbps;
  const bool across = route.hosts > 1;
  switch (route.kind) {
    case kAllToAll:
    case kAllToAllV:
      return std::max(size * (s.per_host - 1) / s.n / peak,
                      across ? size * (s.n - s.per_host) / s.n / route.nic_gbps : 0);
    case kSendRecv: return size / (across ? std::min(peak, route.nic_gbps) : pair_rate(route, peak));
    case kAllReduce:
    case kAllGather:
    case kReduceScatter:
      if (across)
        return (route.kind == kAllReduce ? 2 : 1) *
               std::max((s.per_host - 1) / s.per_host * size / peak, (s.hosts - 1) / s.hosts * size / s.net);
      break;
    default: break;
  }
  return size * bus_factor(route.kind, route.ranks) / (across ? std::min(peak, s.net) : peak);
}

double bound_ns(const TransferRoute& route, int64_t bytes) {
  if (route.kind != CollectiveKind::kAllReduce || route.ranks < 2 || bytes <= 0) return wire_ns(route, bytes);
  const Sizes s(route);
  const double size = static_cast<double>(bytes);
  const double once = route.fabric->reduces_inside() ? 1 : 2 * (s.per_host - 1) / s.per_host;
  return std::max(s.per_host > 1 ? size * once / route.fabric->peak_gbps : 0, route.hosts > 1 ? size / s.net : 0);
}

double expected_ns(const TransferRoute& route, int64_t bytes) {
  using enum CollectiveKind;
  if (route.ranks < 2) return 0;
  const Sizes s(route);
  const double size = static_cast<double>(bytes), links = route.fabric->tuner_gbps;
  const bool across = route.hosts > 1;
  const double message_ns = 8'400 + 3'400 + (across ? 14'000 : 0);
  if (route.kind == kSendRecv)
    return message_ns + size / (across ? std::min(links, route.nic_gbps * kNetShare) : pair_rate(route, links));
  if (route.kind == kAllToAll || route.kind == kAllToAllV)
    return message_ns + std::max(size * (s.per_host - 1) / s.n / links,
                                 across ? size * (s.n - s.per_host) / s.n / (route.nic_gbps * kNetShare) : 0);
  const Tuner tuner(route);
  double best = std::numeric_limits<double>::infinity();
  for (size_t protocol = 0; protocol < 3; ++protocol) {
    best = std::min(best, tuner.ring_ns(protocol, size));
    if (route.kind == kAllReduce) best = std::min(best, tuner.tree_ns(protocol, bytes));
  }
  return route.kind == kAllReduce ? std::min(best, tuner.switch_ns(size)) : best;
}

std::string_view verdict_name(TransferVerdict verdict) {
  constexpr std::array<std::string_view, 5> kNames = {"impossible", "normal", "slow", "small", "unknown"};
  return kNames[static_cast<size_t>(verdict)];
}

// The limits come from measured sweeps of H200, B200 and 4 × B200: from these sizes on no healthy row took twice the
// estimate, and below them none in a host took five times as much.
TransferVerdict judge_transfer(const TransferRoute& route, int64_t bytes, int64_t took_ns) {
  constexpr double kJudgedInside = 100'000, kJudgedAcross = 500'000, kSomewhatInside = 10'000;
  if (!route.known() || bytes <= 0) return TransferVerdict::kUnknown;
  const double took = static_cast<double>(took_ns);
  if (took < bound_ns(route, bytes) * 0.98) return TransferVerdict::kImpossible;
  // The estimate is of NCCL's tuner; RCCL and HCCL choose otherwise, and no sweep of theirs is at hand.
  if (route.fabric->chips == Fabric::Chips::kOther) return TransferVerdict::kUnknown;
  const double wire = wire_ns(route, bytes), expected = expected_ns(route, bytes);
  if (wire < (route.hosts == 1 ? kJudgedInside : kJudgedAcross)) {
    const bool slow = route.hosts == 1 && wire >= kSomewhatInside && took > 5 * expected;
    return slow ? TransferVerdict::kSlow : TransferVerdict::kSmall;
  }
  return took > 2 * expected ? TransferVerdict::kSlow : TransferVerdict::kNormal;
}

}  // namespace stageline
