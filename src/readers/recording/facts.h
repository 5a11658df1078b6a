// Turns the data of recorded ranges beyond name and time into facts of profiler traces. These are messages and
// collectives (peer, bytes, number) and, if no job has a kind, the pipeline work in a name. Clocks, links and cells are
// then found by the same code as for profiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "readers/common/ops.h"
#include "readers/recording/rows.h"

namespace stageline::recording {

inline constexpr uint8_t kCommunicatorLane = 4;  // LaneRow::device_kind of a lane of NCCL's operations
inline constexpr uint8_t kKernelLane = 5;        // lane of a stream's kernels, recorded through CUPTI
inline constexpr uint8_t kLaunchLane = 6;  // lane of a thread's calls that launched device work, recorded through CUPTI

// Returns the entry whose index is `wanted`; entries are ordered by index.
template <class T>
const T* find_index(const std::vector<T>& entries, uint32_t wanted) {
  const auto at = std::ranges::lower_bound(entries, wanted, {}, &T::index);
  return at != entries.end() && at->index == wanted ? &*at : nullptr;
}

class FactMaker {
 public:
  explicit FactMaker(Trace& trace) : trace_(trace) {}

  // Adds the lanes of a rank, before its ranges: they assign ranks to the members of a communicator.
  void add_lanes(const Content& content, int32_t rank);
  // Takes a range that became `op`; op.file_index must grow from call to call. `name` is as recorded, `domain` its
  // lane's.
  void add(const Op& op, const Row& row, const LaneRow* lane, std::string_view name, std::string_view domain);
  // Finds the slices again in the parts, which must have been built.
  void fill();

 private:
  struct Message {
    uint32_t index = 0;  // Op::file_index
    int32_t rank = 0, peer = -1, own = -1, size = 0;
    int64_t bytes = -1, sequence = -1;
    uint64_t communicator = 0;
    StringId name = 0;
    bool timed = true;  // its times are when it ran, and not when it was called
  };
  struct Range {
    uint32_t index = 0;
    RangeFact fact;
  };
  CollectiveFact fact_of(const Message& message) const;

  Trace& trace_;
  std::vector<Message> messages_;
  std::vector<Range> ranges_;  // empty once some job has a kind
  bool has_cells_ = false;
  std::map<std::pair<uint64_t, int32_t>, int32_t> rank_of_;  // (communicator, number in it) → global rank
};

}  // namespace stageline::recording
