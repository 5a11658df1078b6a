// Options of a simulated Ascend profile: how much it holds, and which texts its marks have.
#pragma once

#include <cstdint>

#include "model/rank_grid.h"
#include "model/schedule.h"

namespace stageline {

enum class AscendLevel : uint8_t {
  kNone,    // marks only: ranges on the host and their intervals on the device
  kLevel0,  // also kernels, operators and communication operations
  kLevel1,  // also the transfers that each communication operation consists of
};
enum class AscendMarks : uint8_t {
  // The marks of the vendor's guide: Python's str(dict), mostly without micro-batch numbers.
  kGuide,
  kHelper,  // the marks that collect/stageline_mstx.py writes: JSON with micro-batch, chunk, stage and step
};
// Form of the built-in communication ranges at Level_none.
enum class LevelNoneComm : uint8_t { kNo, kPlain, kEscaped };

struct AscendDbOptions {
  Schedule schedule;
  RankGrid grid;
  AscendLevel level = AscendLevel::kNone;
  AscendMarks marks = AscendMarks::kGuide;
  LevelNoneComm level_none_comm = LevelNoneComm::kNo;
  int64_t first_step = 10;
  int64_t latency_ns = 0;
  int64_t reduce_ns = 0;   // SimulateOptions::reduce_ns
  bool batch_p2p = false;  // hcom_batchSendRecv, Megatron's default, instead of one operation for each tensor
  // A mistake that the guide invites: a WeightGradStore.pop range after every whole backward of the cool-down.
  bool empty_pop = false;
  bool step_time = true;
  bool pp_info = false;
  bool mindspore = false;  // uses the names of MindSpore's profiler instead of PyTorch's
};

}  // namespace stageline
