// Finds waits that ran the devices dry. A gap after a wait has two owners: the wait, without which work would have been
// queued, and the host's work before it launched again. One of the two is reported.
#include "diagnosis/profile/loss_search.h"

namespace stageline {
namespace {

// A wait that saves this much of what the work saves is reported in its place. If they are nearly equal the work is
// reported, because faster work makes it unnecessary to remove the wait. Launches are never fast enough to refill a
// queue that a wait has emptied, so of those two the wait is the cause.
constexpr double kClearlyMore = 1.15, kNearlyAsMuch = 0.8;

struct Drain {
  RankLoss loss;
  std::map<OwnerKey, int64_t> then;  // idle time after the wait, by the host's work in it
};

// Returns the number of the waits, if they follow most of the device's work; else 0.
int64_t frequent_waits(const DeviceTimeline& timeline, const std::vector<bool>& wait_nodes) {
  const auto waits = std::ranges::count_if(timeline.host, [&](const DeviceTimeline::HostItem& item) {
    return item.waits_for >= 0 && wait_nodes[item.node];
  });
  return 2 * waits > std::ssize(timeline.device) ? waits : 0;
}

std::vector<Drain> drains_of(LossSearch& search) {
  const DeviceTimeline& timeline = search.timeline;
  std::map<std::string, std::vector<const DrainedIdle*>> by_wait;  // key: what waits
  for (const DrainedIdle& drained : timeline.drained) {
    const Culprit c = search.culprits.of(drained.wait_node);
    by_wait[c.call + "\n" + c.op + "\n" + c.frame].push_back(&drained);
  }
  std::vector<Drain> out;
  for (const auto& [text, rows] : by_wait) {
    Drain drain;
    int64_t idle = 0;
    TakenOut without;
    without.wait_nodes.assign(timeline.nodes.size(), false);
    for (const DrainedIdle* row : rows) {
      idle += row->idle_ns;
      drain.then[row->key] += row->idle_ns;
      without.wait_nodes[row->wait_node] = true;
    }
    if (idle < search.min_loss_ns()) continue;
    RankLoss& x = drain.loss;
    x.kind = LossKind::kDrain;
    x.at = search.culprits.of(rows.front()->wait_node);
    x.recorded_ns = idle;
    x.waits = frequent_waits(timeline, without.wait_nodes);
    const auto maximum = std::ranges::max_element(drain.then, {}, [](const auto& of) { return of.second; });
    if (2 * maximum->second > idle) x.beside = search.culprits.of(node_of_key(maximum->first));
    x.price_ns = std::min(search.saved_ns(without), x.recorded_ns);
    search.keep(without, x);
    out.push_back(std::move(drain));
  }
  return out;
}

// Returns the losses of idle time that for the most part lie after the wait.
std::vector<IdleLoss*> contested(const Drain& drain, std::vector<IdleLoss>& idle) {
  std::vector<IdleLoss*> out;
  for (IdleLoss& of : idle) {
    double both = 0;
    for (const auto& [key, ns] : drain.then)
      if (of.keys[key]) both += ns;
    if (!of.is_replaced && both >= 0.5 * of.loss.recorded_ns) out.push_back(&of);
  }
  return out;
}

}  // namespace

void add_idle_and_drains(std::vector<IdleLoss> idle, LossSearch& search) {
  std::vector<RankLoss> waits;
  for (Drain& drain : drains_of(search)) {
    const std::vector<IdleLoss*> works = contested(drain, idle);
    const bool launches =
        std::ranges::all_of(works, [](const IdleLoss* of) { return of->loss.owner == IdleCause::kDispatch; });
    const double work_ns = sum_over<double>(works, [](const IdleLoss* of) { return of->loss.price_ns; });
    if (works.empty() || drain.loss.price_ns > (launches ? kNearlyAsMuch : kClearlyMore) * work_ns) {
      for (IdleLoss* work : works) work->is_replaced = true;
      waits.push_back(std::move(drain.loss));
    } else {
      for (IdleLoss* work : works)
        if (work->loss.beside.empty()) work->loss.beside = drain.loss.at;
    }
  }
  for (IdleLoss& of : idle)
    if (!of.is_replaced) search.losses.push_back(std::move(of.loss));
  std::ranges::move(waits, std::back_inserter(search.losses));
}

}  // namespace stageline
