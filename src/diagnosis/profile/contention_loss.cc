// Finds computation that takes longer while communication runs at the same time. Kernels of one name, launched by one
// place of the program, are compared with those of them that run alone.
#include "diagnosis/profile/loss_search.h"
#include "model/statistics.h"

namespace stageline {
namespace {

// Kernels count as overlapping communication if at least half of their time does, and as alone if almost none does.
constexpr double kOverlapping = 0.5, kAlone = 0.05;
constexpr double kSteady = 1.15;  // most that a tenth of the kernels alone may exceed, times their median

struct Twins {
  std::vector<double> alone;        // ns
  std::vector<size_t> overlapping;  // items
};
using TwinsByName = std::unordered_map<uint64_t, Twins>;  // key: the host's node, and the name in the lower 32 bits

TwinsByName twins_of(const LossSearch& search, std::vector<Interval> communication) {
  const CoveredTime under_comm(union_of(std::move(communication)));
  TwinsByName twins;
  for (size_t j = 0; j < search.timeline.device.size(); ++j) {
    const auto& item = search.timeline.device[j];
    if (item.kernel != KernelClass::kComputation || item.launch < 0) continue;
    const double length = item.end_ns - item.start_ns;
    if (length <= 0) continue;
    const double share = under_comm.within(item.start_ns, item.end_ns) / length;
    const uint64_t node = search.timeline.host[item.launch].node;
    Twins& pair = twins[node << 32 | search.part.slices.name_id[item.slice]];
    if (share <= kAlone) pair.alone.push_back(length);
    if (share >= kOverlapping) pair.overlapping.push_back(j);
  }
  return twins;
}

// Also takes out the communication during the kernels that `out` shortens.
void take_out_communication(const DeviceTimeline& timeline, TakenOut& out) {
  std::vector<Interval> slowed;
  for (size_t j = 0; j < timeline.device.size(); ++j)
    if (out.device_ns[j] >= 0) slowed.push_back({timeline.device[j].start_ns, timeline.device[j].end_ns});
  const CoveredTime under_slowed(union_of(std::move(slowed)));
  for (size_t j = 0; j < timeline.device.size(); ++j)
    if (const auto& item = timeline.device[j];
        item.kernel == KernelClass::kCommunication && under_slowed.within(item.start_ns, item.end_ns) > 0)
      out.device_ns[j] = 0;
}

}  // namespace

void find_contention(LossSearch& search) {
  std::vector<Interval> communication = search.work_of(KernelClass::kCommunication);
  if (communication.empty()) return;
  TakenOut out = search.without_device_work();
  double slower = 0, usual = 0, worst_ns = 0;
  RankLoss x;
  x.kind = LossKind::kContention;
  for (auto& [key, pair] : twins_of(search, std::move(communication))) {
    if (pair.alone.size() < kMinLikeKernels || pair.overlapping.size() < kMinLikeKernels) continue;
    std::ranges::sort(pair.alone);
    const double median = median_of(pair.alone);
    if (pair.alone[pair.alone.size() * 9 / 10] > kSteady * median) continue;
    double lost = 0;
    for (const size_t j : pair.overlapping) {
      const double length = search.timeline.device[j].end_ns - search.timeline.device[j].start_ns;
      lost += length - median;
      out.device_ns[j] = static_cast<int64_t>(std::min(length, median));
    }
    slower += lost;
    usual += median * pair.overlapping.size();
    if (lost > worst_ns)
      worst_ns = lost, x.what = search.kernel_name(search.timeline.device[pair.overlapping[0]].slice);
  }
  if (!(usual > 0) || slower + usual < kSlowedKernels * usual) return;
  x.ratio = (slower + usual) / usual;
  x.recorded_ns = slower;
  x.price_ns = search.saved_ns(out);
  search.keep(out, x);
  // Moved to where it slows nothing, the communication may become exposed instead.
  take_out_communication(search.timeline, out);
  x.caused_ns = search.saved_ns(out);
  search.losses.push_back(std::move(x));
}

}  // namespace stageline
