// How much a simulated Ascend profile holds, and in whose words.
#pragma once

#include <cstdint>

#include "model/rank_grid.h"
#include "model/schedule.h"

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

}  // namespace stageline
