// Compares the rate of exposed transfers with what their hardware reaches.
#include "diagnosis/profile/transfer_calls.h"
#include "diagnosis/profile/transfer_findings.h"
#include "model/statistics.h"

namespace stageline {

namespace {

// Transfers that take this many times as long as they need are slow for another reason than their start or their bytes.
constexpr double kFarFromEstimate = 2;

struct Sum {
  double exposed_ns = 0, took_ns = 0, bus_bytes = 0, expected_ns = 0;
  TransferRoute route;
};
using SumsByRoute = std::map<std::tuple<CollectiveKind, int64_t, int64_t>, Sum>;  // key: kind, ranks, hosts

SumsByRoute sums_by_route(const LedgerOfRun& run) {
  SumsByRoute sums;
  const Fabric* const fabric = fabric_of(run);
  for (const LedgerInstance& x : run.ledger.instances) {
    if (!is_complete_transfer(run, x) || x.basis == TransferBasis::kAtLeast) continue;
    const TransferRoute route = route_of(run, x.kind, run.ledger.groups[x.group], fabric);
    Sum& sum = sums[{x.kind, route.ranks, route.hosts}];
    sum.route = route;
    sum.took_ns += x.took_ns, sum.bus_bytes += x.bus_bytes;
    sum.expected_ns += expected_or_zero_ns(route, x.bytes);
    for (size_t k = x.begin; k < x.end; ++k) sum.exposed_ns += run.ledger.parts[k].exposed_transfer_ns;
  }
  return sums;
}

}  // namespace

Text rate_of_exposed(const LedgerOfRun& run) {
  const SumsByRoute sums = sums_by_route(run);
  const auto most = std::ranges::max_element(sums, {}, [](const auto& of) { return of.second.exposed_ns; });
  // A group without members has no rate of the bus.
  if (most == sums.end() || !(most->second.took_ns > 0) || most->second.route.ranks < 2) return {};
  const Sum& sum = most->second;
  Args args;
  args.set("kind", kind_text(sum.route.kind)).set("ranks", sum.route.ranks).count("hosts", sum.route.hosts);
  args.set("rate", fixed(sum.bus_bytes / sum.took_ns, 1));
  args.set("expected", sum.expected_ns > 0 ? fixed(sum.bus_bytes / sum.expected_ns, 1) : "");
  Text rate = words("profile.exposed.rate", args.flag("across", sum.route.hosts > 1));
  const double times = share_or_zero(sum.took_ns, sum.expected_ns);
  if (times >= kFarFromEstimate)
    rate += words("profile.exposed.advice.slow", Args().set("times", fixed(times, 1) + "×"));
  return rate;
}

}  // namespace stageline
