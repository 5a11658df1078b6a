// Splits the device time of each rank of a profile into parts, and attributes time without compute to its cause. The
// saving of each cause is estimated by the replay in profile/device_timeline.
#pragma once

#include "diagnosis/profile/culprit.h"
#include "facts/run.h"
#include "profile/timeline_replay.h"

namespace stageline {

enum class LossKind : uint8_t {
  kIdle,        // devices are idle while the host works; `owner` is the work
  kDrain,       // the host waited for the devices with nothing queued behind; its work after that left them idle
  kCollective,  // communication during which nothing is computed
  kCopy,        // copies during which nothing else runs
  kContention,  // computation that takes longer while communication runs at the same time
  kAiCpu,       // kernels on the processors next to the cores that compute (AI_CPU of Ascend)
  kFewCores,    // kernels that run on few of the cores
  kMisaligned,  // matrix products whose inner axes take longer for not being multiples of a line (Ascend)
};

struct RankLoss {
  LossKind kind = LossKind::kIdle;
  IdleCause owner = IdleCause::kUnseen;
  Culprit at;
  Culprit beside;           // kDrain: what the host did after the wait; kIdle: the wait that ran the devices dry
  Culprit next;             // of kIdle that no slice names: the call after its longest piece
  bool of_model = false;    // of kIdle: an operator or optimizer step that itself launches what computes
  std::string what;         // name of the collective or copy
  int64_t waits = 0;        // of kDrain: how many, if they follow most of the device's work; else 0
  int64_t members = 0;      // of kCollective: size of its group; 0: unknown
  int64_t stream = -1;      // of collectives and copies
  bool one_stream = false;  // of kCollective: most computing is on the same stream, so the two cannot overlap
  int64_t waiting = -1;     // the stream that waited for them; −1: none was seen
  double recorded_ns = 0;   // the idle or exposed time itself
  double price_ns = 0;      // how much shorter the window is without it
  double caused_ns = 0;     // of kContention: how much shorter the window is without that communication altogether
  double uncertainty_ns = 0;
  int64_t short_kernels = 0;  // of kDispatch: kernels that are shorter than their launches
  double pauses_ns = 0;   // the part of recorded_ns that lies between such kernels though they were launched in time
  double fixed_ns = 0;    // what that many kernels take if each is as short as the shortest; it is not in recorded_ns
  double longest_ns = 0;  // longest single piece
  int64_t longest_step = -1;
  bool first_call = false;  // the longest piece lies in the first call of its kind
  // Of kContention: kernel times to those of the same kernels alone. Of kFewCores: the part of the cores that is used.
  // Of kMisaligned: time for the same work, to that of aligned products.
  double ratio = 0;
  std::shared_ptr<const TakenOut> out;  // what the replay of its price removed; null in accounts
};

struct RankAccount {
  int32_t rank = 0;
  bool linked = false;  // launches are known, so idle time has owners and losses have prices
  double steps_ns = 0;  // the window, with the time in which work was lost
  double window_ns = 0, compute_ns = 0, comm_ns = 0, exposed_comm_ns = 0, exposed_memory_ns = 0, other_work_ns = 0;
  ByEnum<IdleCause, double, kIdleCauses> idle_ns = {};
  double idle_of_host_ns() const;  // all but kBetween and kStream
  double all_idle_ns() const;
  double before_and_after_ns = 0;  // recorded outside the window
  int64_t steps = 0;
  std::vector<RankLoss> losses;  // by price; exposed work, and others from kMinLoss of the window on
  // The source of the account, kept in runs of at most kMaxKeptSlices for a replay of all ranks; else null.
  static constexpr size_t kMaxKeptSlices = size_t{1} << 20;
  std::shared_ptr<const DeviceTimeline> timeline;
};
inline constexpr double kMinLoss = 0.01;

// One account for every part with device work, in the order of the parts.
using ProfileAccount = std::vector<RankAccount>;
ProfileAccount profile_account(const Trace& trace);
// A rank's time that is removed at once: losses, and shares of its exposed communication, exposed copies and computing.
struct Removed {
  std::function<bool(const RankLoss&)> loss;
  double communication = 0, copies = 0, compute = 0;
};
// Returns by one replay how much shorter the rank's window is without all of that; at most its recorded losses.
double saved_without(const Trace& trace, const Part& part, const Removed& removed);
// The windows of all ranks together.
double window_of(const ProfileAccount& account);
// Returns true when the launches of all ranks are known.
bool is_linked(const ProfileAccount& account);

struct ProfileAccountFact {
  using Value = ProfileAccount;
  static Value make(const Run& run) { return profile_account(run.trace()); }
};

}  // namespace stageline
