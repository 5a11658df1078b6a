// Makes the account of each rank.
#include "base/parallel.h"
#include "diagnosis/profile/loss_search.h"
#include "profile/device_timeline.h"
#include "profile/idle_gaps.h"

namespace stageline {
namespace {

std::vector<RankLoss> losses_of(const Trace& trace, const DeviceTimeline& timeline, bool keeps) {
  LossSearch search(trace, timeline, keeps);
  add_idle_and_drains(idle_losses(search), search);
  find_exposed(search);
  find_contention(search);
  find_weak_kernels(search);
  find_misaligned(search);
  // Exposed work was recorded, whether the step would be shorter without it or the host sets the pace.
  std::erase_if(search.losses, [&](const RankLoss& x) {
    const bool exposed = x.kind == LossKind::kCollective || x.kind == LossKind::kCopy;
    return !exposed && std::max(x.price_ns, x.caused_ns) < search.min_loss_ns();
  });
  sort_stably(search.losses, std::greater(), &RankLoss::price_ns);
  return std::move(search.losses);
}

RankAccount account_of(const Trace& trace, const Part& part, bool truncated) {
  RankAccount a;
  a.rank = part.rank;
  const auto timeline = std::make_shared<const DeviceTimeline>(device_timeline(trace, part));
  const DeviceTimeline& t = *timeline;
  if (t.device.empty() || t.window_ns() <= 0) return a;
  if (trace.slice_count() <= RankAccount::kMaxKeptSlices) a.timeline = timeline;
  a.window_ns = t.window_ns();
  a.steps_ns = t.window_ns() + t.lost_ns;
  a.compute_ns = t.compute_ns;
  a.comm_ns = t.comm_ns;
  a.exposed_comm_ns = t.exposed_comm_ns;
  a.exposed_memory_ns = t.exposed_memory_ns;
  a.other_work_ns = t.other_work_ns;
  for (size_t o = 0; o < kIdleCauses; ++o) a.idle_ns[o] = t.idle_ns[o];
  a.steps = t.step_count;
  int64_t first = t.start_ns, last = t.end_ns;  // after the end of a file that is cut off, nothing is known
  for (size_t i = 0; i < part.slices.size(); ++i) {
    const Category c = trace.categories[part.slices.category_id[i]].kind;
    if (!is_host(c) && !is_device_work(c)) continue;
    first = std::min(first, part.slices.start_ns[i]);
    if (!truncated) last = std::max(last, part.slices.end_ns(i));
  }
  a.before_and_after_ns = t.start_ns - first + last - t.end_ns;
  a.linked = t.linked;
  if (a.linked) a.losses = losses_of(trace, t, false);
  return a;
}

}  // namespace

double RankAccount::all_idle_ns() const { return std::accumulate(idle_ns.begin(), idle_ns.end(), 0.0); }
double RankAccount::idle_of_host_ns() const {
  return all_idle_ns() - idle_ns[IdleCause::kBetween] - idle_ns[IdleCause::kStream];
}

double saved_without(const Trace& trace, const Part& part, const Removed& removed) {
  const DeviceTimeline t = device_timeline(trace, part);
  if (!t.linked) return 0;
  TakenOut out;
  out.keys.assign(t.idle_of_key.size(), false);
  out.wait_nodes.assign(t.nodes.size(), false);
  out.device_ns.assign(t.device.size(), -1);
  const auto shorten = [&](size_t j, int64_t length) {
    int64_t& known = out.device_ns[j];
    if (length >= 0) known = known < 0 ? length : std::min(known, length);
  };
  double beyond_replay = 0, most = 0;  // pauses between short kernels, and half of their time; all that was lost
  for (const RankLoss& loss : losses_of(trace, t, true)) {
    if (!removed.loss(loss)) continue;
    beyond_replay += loss.pauses_ns + loss.fixed_ns / 2;
    most += loss.recorded_ns + loss.fixed_ns / 2;
    for (size_t k = 0; k < loss.out->keys.size(); ++k) out.keys[k] = out.keys[k] || loss.out->keys[k];
    for (size_t k = 0; k < loss.out->wait_nodes.size(); ++k)
      out.wait_nodes[k] = out.wait_nodes[k] || loss.out->wait_nodes[k];
    for (size_t j = 0; j < loss.out->device_ns.size(); ++j) shorten(j, loss.out->device_ns[j]);
  }
  std::vector<double> taken(t.device.size(), 0);
  for (const WindowPiece& piece : window_pieces(t)) {
    const double share = piece.part == WindowPart::kCompute         ? removed.compute
                         : piece.part == WindowPart::kCommunication ? removed.communication
                         : piece.part == WindowPart::kMemory        ? removed.copies
                                                                    : 0;
    if (share > 0) taken[piece.what] += share * piece.ns(), most += share * piece.ns();
  }
  for (size_t j = 0; j < taken.size(); ++j)
    if (taken[j] > 0)
      shorten(j, std::max<int64_t>(0, t.device[j].end_ns - t.device[j].start_ns - std::llround(taken[j])));
  return std::min(replayed_ns(t, {}) - replayed_ns(t, out) + beyond_replay, most);
}

double window_of(const ProfileAccount& account) { return sum_over<double>(account, &RankAccount::window_ns); }

bool is_linked(const ProfileAccount& account) {
  return !account.empty() && std::ranges::all_of(account, [](const RankAccount& a) { return a.linked; });
}

ProfileAccount profile_account(const Trace& trace) {
  const bool truncated = trace.diagnostics.count("kineto.truncated") > 0;
  const std::vector<int32_t>& wanted = trace.slice_filter.ranks;
  std::vector<RankAccount> all(trace.parts.size());
  parallel_for(trace.parts.size(), [&](size_t p) {
    const Part& part = trace.parts[p];
    if (part.slices.has_facts() && part.slices.size() > 0 &&
        (wanted.empty() || std::ranges::binary_search(wanted, part.rank)))
      all[p] = account_of(trace, part, truncated);
  });
  std::erase_if(all, [](const RankAccount& a) { return !(a.window_ns > 0); });
  return all;
}

}  // namespace stageline
