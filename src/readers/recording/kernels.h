// Turns recorded kernels, copies and launches (stageline record --kernels) into the rows of a profiler's trace, so that
// every question about profiles can be asked of such a recording.
//
//   kernels' lanes   ──▶ device streams: kernel, gpu_memcpy, gpu_memset; class by name; bytes
//   launches' lanes  ──▶ cuda_runtime, cuda_driver on the lane of their thread, linked to their work by correlation
//   other ranges     ──▶ user_annotation; of a device gpu_user_annotation; of a communicator collective_comm
//   steps            ──▶ ProfilerStep#N on the lane of the thread that recorded them
//
// A recording without kernels is not changed: its slices do not have these facts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "readers/common/ops.h"
#include "readers/recording/rows.h"

namespace stageline::recording {

class KernelMaker {
 public:
  explicit KernelMaker(Trace& trace) : trace_(trace) {}

  // Takes a recording's lanes, before its ranges. `places` maps a lane to its index in `names`, the lanes of the trace.
  void add_lanes(const Content& content, int32_t rank, const std::map<uint16_t, uint32_t>& places,
                 const std::vector<std::string>& names);
  // Takes a range that became `op`; op.file_index must grow from call to call.
  void add(const Op& op, const Row& row, const LaneRow* lane);
  // Takes the begin of a step; number, time and place are those of the op.
  void add_step(const Op& op) { steps_.push_back(op); }
  // Adds the steps as ranges, each up to the next of its rank; to be called before parts are built. O(ops).
  void append_steps(std::vector<Op>& ops);
  // Fills the columns of all parts, once parts and sparse facts exist. Restarts Slices::file_index in each part.
  void fill();

 private:
  struct Note {  // about a row that its lane alone does not explain
    uint32_t index = 0;
    uint32_t correlation = kNoCorrelation;
    int64_t bytes = -1;
    int32_t step = -1;
    uint8_t category = 0;
    bool communicates = false;
  };
  struct LaneFacts {
    LaneKind kind = LaneKind::kOther;
    uint8_t category = 0;
    std::string pid, tid;
    int64_t stream = -1;
  };
  void fill_part(Part& part) const;

  Trace& trace_;
  std::vector<Note> notes_;
  std::vector<Op> steps_;
  std::map<std::pair<int32_t, std::string>, LaneFacts> lanes_;  // key: rank and name
  bool any_ = false;
};

}  // namespace stageline::recording
