// Recorded kernels, copies and launches (stageline record --kernels) as a profiler's trace has them, so that every
// question that is asked of a profile can be asked of such a recording.
//
//   kernels' lanes   ──▶ device streams: kernel, gpu_memcpy, gpu_memset; class by name; bytes
//   launches' lanes  ──▶ cuda_runtime, cuda_driver on the lane of their thread, tied to their work by correlation
//   other ranges     ──▶ user_annotation; of a device gpu_user_annotation; of a communicator collective_comm
//   steps            ──▶ ProfilerStep#N on the lane of the thread that said them
//
// A recording without kernels stays as it is: slices without these facts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/ops.h"
#include "readers/recording/rows.h"

namespace stageline::recording {

class KernelMaker {
 public:
  explicit KernelMaker(Trace& trace) : trace_(trace) {}

  // A recording's lanes before its ranges. `places`: lane → place in `names`, the lanes of the trace.
  void add_lanes(const Content& content, int32_t rank, const std::map<uint16_t, uint32_t>& places,
                 const std::vector<std::string>& names);
  // A range that became `op`; op.file_index must grow from call to call.
  void add(const Op& op, const Row& row, const LaneRow* lane);
  // A step that began: its number, time and place are the op's.
  void add_step(const Op& op) { steps_.push_back(op); }
  // Adds the steps as ranges, each until the next of its rank begins; before parts are built. O(ops).
  void append_steps(std::vector<Op>& ops);
  // Fills the columns of all parts, once they and the sparse facts are there. Renumbers Slices::file_index by part.
  void fill();

 private:
  struct Note {  // of a row that is not told by its lane alone
    uint32_t index = 0;
    uint32_t correlation = kNoCorrelation;
    int64_t bytes = -1;
    int32_t step = -1;
    uint8_t category = 0;
    bool communicates = false;
  };
  struct LaneSaid {
    LaneKind kind = LaneKind::kOther;
    uint8_t category = 0;
    std::string pid, tid;
    int64_t stream = -1;
  };
  void fill_part(Part& part) const;

  Trace& trace_;
  std::vector<Note> notes_;
  std::vector<Op> steps_;
  std::map<std::pair<int32_t, std::string>, LaneSaid> lanes_;  // by rank and name
  bool any_ = false;
};

}  // namespace stageline::recording
