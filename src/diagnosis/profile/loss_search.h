// The search for the losses of one rank: what all kinds of losses share, and one function for each kind.
#pragma once

#include "diagnosis/profile/rank_losses.h"

namespace stageline {

class LossSearch {
 public:
  // `keeps`: losses keep what their replays removed.
  LossSearch(const Trace& of_trace, const DeviceTimeline& of_rank, bool keeps)
      : trace(of_trace), part(*of_rank.part), timeline(of_rank), culprits(of_trace, of_rank), keeps_(keeps),
        recorded_ns_(replayed_ns(of_rank, {})) {}

  const Trace& trace;
  const Part& part;
  const DeviceTimeline& timeline;
  CulpritFinder culprits;
  std::vector<RankLoss> losses;

  // The shortest time that makes a loss.
  double min_loss_ns() const { return kMinLoss * timeline.window_ns(); }
  std::string name(StringId id) const { return std::string(trace.names.text(id)); }
  std::string kernel_name(uint32_t slice) const {
    return short_kernel_name(trace.names.text(part.slices.name_id[slice]));
  }
  // Returns the device's work of a kind, in order of start.
  std::vector<Interval> work_of(KernelClass kernel) const {
    std::vector<Interval> out;
    for (const auto& item : timeline.device)
      if (item.kernel == kernel) out.push_back({item.start_ns, item.end_ns});
    return out;
  }
  TakenOut without_device_work() const { return {{}, {}, std::vector<int64_t>(timeline.device.size(), -1)}; }
  // Returns by replay how much shorter the window is without `out`.
  double saved_ns(const TakenOut& out) const { return recorded_ns_ - replayed_ns(timeline, out); }
  void keep(const TakenOut& out, RankLoss& loss) const {
    if (keeps_) loss.out = std::make_shared<const TakenOut>(out);
  }
  // Adds a loss whose price is what a replay without `out` saves.
  void add(RankLoss loss, const TakenOut& out) {
    loss.price_ns = saved_ns(out);
    keep(out, loss);
    losses.push_back(std::move(loss));
  }

 private:
  const bool keeps_;
  const int64_t recorded_ns_;
};

// Kernels that could take less time, as one loss.
struct ShorterKernels {
  explicit ShorterKernels(const LossSearch& search)
      : device(search.timeline.device), out(search.without_device_work()) {}
  void shorten(size_t item, int64_t to_ns) {
    const int64_t length = device[item].end_ns - device[item].start_ns;
    out.device_ns[item] = to_ns;
    recorded_ns += length, possible_ns += to_ns;
    if (length - to_ns > max_saved_ns) max_saved_ns = length - to_ns, worst = item;
  }

  const std::vector<DeviceTimeline::DeviceItem>& device;
  TakenOut out;
  double recorded_ns = 0, possible_ns = 0;  // of all these kernels
  double max_saved_ns = 0;
  size_t worst = 0;  // the kernel that saves max_saved_ns
};

// A loss of idle time, and the pieces of the host's time that own it, by OwnerKey.
struct IdleLoss {
  RankLoss loss;
  std::vector<bool> keys;
  bool is_replaced = false;  // by a wait that ran the devices dry
};
std::vector<IdleLoss> idle_losses(LossSearch& search);

// Adds the losses of idle time and those of waits that ran the devices dry, one of the two for each gap.
void add_idle_and_drains(std::vector<IdleLoss> idle, LossSearch& search);

void find_exposed(LossSearch& search);
void find_contention(LossSearch& search);
void find_weak_kernels(LossSearch& search);  // kAiCpu and kFewCores
void find_misaligned(LossSearch& search);

// Kernels count as slowed from this ratio to others like them on, if there are that many of both.
inline constexpr double kSlowedKernels = 1.15;
inline constexpr size_t kMinLikeKernels = 3;

}  // namespace stageline
