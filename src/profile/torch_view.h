// Rows of profiler traces as analyses look at them, one rank at a time, in one of two modes:
//
//   default   every slice, exact nanoseconds; device work by category; steps by the host's own
//             ProfilerStep rows, device work through its launch
//   hta       what Holistic Trace Analysis holds after loading: microsecond rounding (§ "nanosecond
//             traces"), partner by file order, iteration from any ProfilerStep row, its drop of the last
//             step with duplicated rows. Definitions: docs/analyses/hta-loading.md.
//
// Times of both modes are int64 ns counted from the run's earliest start, so one analysis serves both.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/result.h"
#include "model/trace.h"
#include "profile/torch_rows.h"

namespace stageline {

// Rows that were laid out for one question and serve the next: laying them out is most of what a question costs. For
// whom one trace is asked often (Python); a command that asks once keeps none. Thread-safe.
class TorchRowStore {
 public:
  static constexpr size_t kMostBytes = size_t{2} << 30;  // ranks above it are laid out anew each time
  explicit TorchRowStore(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  std::optional<TorchRun> run(const TorchOptions& options) const;  // as kept
  void keep(const TorchRun& run);
  std::shared_ptr<const TorchRank> rank(const TorchOptions& options, size_t part) const;  // nullptr: not kept
  void keep(const TorchOptions& options, size_t part, const std::shared_ptr<const TorchRank>& rank);

 private:
  static int mode(const TorchOptions& options) { return options.hta * 2 + options.include_last_step; }

  const size_t most_bytes_;
  mutable std::mutex mutex_;
  size_t bytes_ = 0;
  std::map<int, TorchRun> runs_;
  std::map<std::pair<int, size_t>, std::shared_ptr<const TorchRank>> ranks_;
};

// Errors: kBadInput when the trace has no profiler slices, or none of the ranks asked for.
Result<TorchRun> make_torch_run(const Trace& trace, const TorchOptions& options);
// Never null. O(slices of the part), unless the run's store has it; the caller drops it when done, so memory is bounded
// by the ranks at work and the store.
std::shared_ptr<const TorchRank> torch_rank(const TorchRun& run, size_t part);

// A time of a row as HTA prints it: microseconds, from the run's zero.
inline double to_us(int64_t ns) { return static_cast<double>(ns) / 1000.0; }

}  // namespace stageline
