// What recorded ranges say beyond name and time: messages and collectives (peer, bytes, number), and what a name says
// of pipeline work where no job has a kind. Facts of profiler traces, so that clocks, links and cells are found by the
// same code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/ops.h"
#include "readers/recording/rows.h"

namespace stageline::recording {

inline constexpr uint8_t kCommunicatorLane = 4;  // LaneRow::device_kind of NCCL's operations
inline constexpr uint8_t kKernelLane = 5;        // of a stream's kernels, as CUPTI tells them
inline constexpr uint8_t kLaunchLane = 6;        // of a thread's calls that gave the device work, by CUPTI too

// The entry whose index is `wanted`; entries are in order of their index.
template <class T>
const T* find_index(const std::vector<T>& entries, uint32_t wanted) {
  const auto at = std::lower_bound(entries.begin(), entries.end(), wanted,
                                   [](const T& entry, uint32_t index) { return entry.index < index; });
  return at != entries.end() && at->index == wanted ? &*at : nullptr;
}

class FactMaker {
 public:
  explicit FactMaker(Trace& trace) : trace_(trace) {}

  // A rank's lanes, before its ranges: who is who in a communicator.
  void add_lanes(const Content& content, int32_t rank);
  // A range that became `op`; op.file_index must grow from call to call. `name`: as recorded; `domain`: its lane's.
  void add(const Op& op, const Row& row, const LaneRow* lane, std::string_view name, std::string_view domain);
  // Finds the slices again in the parts, which must be built.
  void fill();

 private:
  struct Message {
    uint32_t index = 0;  // Op::file_index
    int32_t rank = 0, peer = -1, own = -1, size = 0;
    int64_t bytes = -1, sequence = -1;
    uint64_t communicator = 0;
    StringId name = 0;
    bool timed = true;  // when it ran, not only when it was asked for
  };
  struct Range {
    uint32_t index = 0;
    RangeFact fact;
  };
  CollectiveFact fact_of(const Message& message) const;

  Trace& trace_;
  std::vector<Message> messages_;
  std::vector<Range> ranges_;  // none once some job has a kind
  bool has_cells_ = false;
  std::map<std::pair<uint64_t, int32_t>, int32_t> rank_of_;  // (communicator, number in it) → global rank
};

}  // namespace stageline::recording
