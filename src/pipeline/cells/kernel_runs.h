// Runs of kernels between the messages of a pipeline, cut into blocks of forward, backward and optimizer work, on one
// rank: the first half of pipeline/cells/kernel_blocks.h, which says how.
#pragma once

#include <cstdint>
#include <vector>

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
  bool may_send = true, may_receive = true;  // both of a batched one
};

struct PartBlocks {
  std::vector<KernelBlock> blocks;        // by start
  std::vector<PipelineMessage> messages;  // by start
  int64_t kernels = 0;
  int64_t small = 0;       // runs that are too short for a block
  int64_t cut = 0;         // blocks that end where no message is
  int64_t overlapped = 0;  // messages beside kernels: then there are no blocks
  bool gradients = false;  // some kernel makes gradients
};

PartBlocks find_part_blocks(const Trace& trace, size_t part, int32_t stage, int32_t stages);

}  // namespace stageline
