// The first half of find_cells.h, which explains the method: cuts the kernels of one rank into blocks
// of forward, backward and optimizer work.
#pragma once

#include "model/trace.h"

namespace stageline {

struct KernelBlock {
  CellKind kind = CellKind::kForward;  // F, B or O
  int32_t step = 0;
  int32_t micro_batch = kUnknown;
  int64_t start_ns = 0, end_ns = 0;
  uint32_t slice = kNoSlice;  // its first kernel
};

struct PipelineMessage {
  uint32_t slice = 0;
  int32_t step = 0;
  int64_t start_ns = 0, end_ns = 0;
  bool may_send = true, may_receive = true;  // a batched operation may do both
};

struct PartBlocks {
  std::vector<KernelBlock> blocks;        // in order of start
  std::vector<PipelineMessage> messages;  // in order of start
  int64_t kernels = 0;
  int64_t small = 0;       // runs too short to be a block
  int64_t cut = 0;         // blocks that end where there is no message
  int64_t overlapped = 0;  // messages that overlap kernels; where this is not 0 there are no blocks
  bool gradients = false;  // whether any kernel computes gradients
};

PartBlocks find_part_blocks(const Trace& trace, size_t part, int32_t stage, int32_t stages);

}  // namespace stageline
