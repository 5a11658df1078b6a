// Writes a simulated run as Ascend PyTorch Profiler databases, one folder a rank, as the profiler and its markers
// would have left them. Tables and conventions: docs/formats/ascend.md; they are the profiler's (schema 1.2.0).
//
//   <host>_<pid>_<stamp>_ascend_pt/profiler_info_<rank>.json, profiler_metadata.json
//                                  ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_<rank>.db, analysis.db
//   truth_links.csv                every message between stages, in true time
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/rank_grid.h"
#include "model/schedule.h"
#include "model/trace.h"

namespace stageline {

enum class AscendLevel : uint8_t {
  kNone,    // markers only: host ranges and their device intervals
  kLevel0,  // + kernels, operators, communication operations
  kLevel1,  // + the transfers that a communication operation is made of
};
enum class AscendMarks : uint8_t {
  kGuide,   // what the vendor's guide has users write: Python's str(dict), mostly without micro-batch numbers
  kHelper,  // what collect/stageline_mstx.py writes: JSON with micro-batch, chunk, stage and step
};
enum class LevelNoneComm : uint8_t { kNo, kPlain, kEscaped };  // built-in communication ranges at Level_none

struct AscendDbOptions {
  Schedule schedule;
  RankGrid grid;
  AscendLevel level = AscendLevel::kNone;
  AscendMarks marks = AscendMarks::kGuide;
  LevelNoneComm level_none_comm = LevelNoneComm::kNo;
  int64_t first_step = 10;
  int64_t latency_ns = 0;
  int64_t reduce_ns = 0;   // SimulateOptions::reduce_ns
  bool batch_p2p = false;  // hcom_batchSendRecv, Megatron's default, instead of one operation a tensor
  bool empty_pop = false;  // the guide's trap: a WeightGradStore.pop range after every whole backward of the cool-down
  bool step_time = true;
  bool pp_info = false;
  bool mindspore = false;  // names of MindSpore's profiler instead of PyTorch's
};

// Process of rank 0; the others follow. Names of folders hold it, and the rank's profiler_info beside it tells a
// simulated profile from a real one.
inline constexpr int64_t kFirstSimulatedPid = 100'000;
// Whether this folder (…_ascend_pt or …_ascend_ms) is one that write_ascend_databases made, whole or not.
bool is_simulated_profile(const std::string& folder);

// `trace` is a simulated run of `options.schedule` (cells in the order of the schedule, parts by rank with stage and
// replica); `clock_offset_ns` by machine. Cells shrink by what must have room beside them: the loss's backward on the
// stage that holds it (MindSpeed's DualPipeV), empty pops. Same input, same bytes. Errors: kIo.
Status write_ascend_databases(Trace& trace, const std::vector<int64_t>& clock_offset_ns, const AscendDbOptions& options,
                              const std::string& folder);

}  // namespace stageline
