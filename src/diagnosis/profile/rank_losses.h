// What a rank of a profile loses, to whom, and what a step would win without it: the account of its devices' time and
// the owners of what they did not compute, each priced by the replay of profile/device_timeline.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/words.h"
#include "facts/run.h"
#include "profile/device_timeline.h"

namespace stageline {

// Whose slices a loss lies in, innermost of each kind; "" where there is none.
struct Culprit {
  std::string call;  // of the runtime or driver: "cudaLaunchKernel"; of Python's built-ins: "<built-in function sleep>"
  std::string op;    // "aten::copy_"
  std::string range;   // a range of the user or of torch: "Optimizer.step#AdamW.step"
  std::string frame;   // the program's own line where there is one: "train.py(57): load_batch"
  std::string module;  // "nn.Module: Linear_3"
  bool operator==(const Culprit&) const = default;
  bool empty() const { return call.empty() && op.empty() && range.empty() && frame.empty() && module.empty(); }
  // "cudaMalloc in aten::empty from train.py(57): load_batch"; "" when empty.
  Text text() const;
  // The one that says most, as a key: "call:cudaMalloc", "frame:train.py(57)".
  std::string key() const;
};

enum class LossKind : uint8_t {
  kIdle,        // the host's work while devices stand idle, by `owner`
  kDrain,       // the host waited for the devices and had nothing queued behind: what it did then left them idle
  kCollective,  // communication with nothing computed over it
  kCopy,        // copies with nothing else over them
  kContention,  // computation that takes longer while communication runs beside it
};

struct RankLoss {
  LossKind kind = LossKind::kIdle;
  IdleOwner owner = IdleOwner::kUnseen;
  Culprit at;
  Culprit beside;          // kDrain: what the host did after the wait; kIdle: the wait that ran the devices dry
  Culprit next;            // kIdle that no slice names: the call after the longest piece of it
  std::string what;        // collective or copy by name
  int64_t members = 0;     // kCollective: of its group; 0: not known
  int64_t stream = -1;     // of copies
  int64_t waiting = -1;    // the stream that waited for them; −1: none was seen to
  double recorded_ns = 0;  // the idle or exposed time itself
  double price_ns = 0;     // what the window is shorter by without it
  double caused_ns = 0;    // kContention: what the window is shorter by without that communication too
  double uncertainty_ns = 0;
  int64_t short_kernels = 0;  // kDispatch: kernels shorter than their launches
  double pauses_ns = 0;       // of recorded_ns: between them, launched in time
  double fixed_ns = 0;    // what as many of the shortest kernel take: part of their time is this, beside recorded_ns
  double longest_ns = 0;  // of single pieces
  int64_t longest_step = -1;
  double ratio = 0;  // kContention: to the same kernels alone
};

struct RankAccount {
  int32_t rank = 0;
  bool linked = false;  // launches are known: idle time has owners, and losses prices
  double window_ns = 0, compute_ns = 0, exposed_comm_ns = 0, exposed_memory_ns = 0, other_work_ns = 0;
  std::array<double, kIdleOwnerCount> idle_ns = {};
  double between_ns = 0, stream_wait_ns = 0, all_idle_ns = 0;
  double before_and_after_ns = 0;  // recorded outside the window
  int64_t steps = 0;
  std::vector<RankLoss> losses;  // by price; those under kLeastLoss of the window are left out
};
inline constexpr double kLeastLoss = 0.01;

// One for every part with device work, in their order.
using ProfileAccount = std::vector<RankAccount>;
ProfileAccount profile_account(const Trace& trace);

struct ProfileAccountFact {
  using Value = ProfileAccount;
  static Value make(const Run& run) { return profile_account(run.trace()); }
};

}  // namespace stageline
