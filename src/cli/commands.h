// The commands. Each returns an exit code, 0 for success or 1 for a finding (--fail-on), or an error, for which the
// program exits with 2.
#pragma once

#include "cli/flags.h"

// Lists what `stageline record` records without a change of the program, as docs/reference/record-python.md does. It is
// for help and messages, which are literals.
#define STAGELINE_RECORDED                                                                                         \
  "torch.distributed.pipelining, DDP, FSDP and FSDP2 (also under transformers' Trainer, Accelerate, Lightning or " \
  "torchtitan), torch.compile, Megatron-Core, MindSpeed, DeepSpeed or Paddle"

namespace stageline {

#define COMMAND(name, run) Result<int> run(const Arguments& arguments);
#include "cli/commands.def"

inline constexpr int kExitGood = 0, kExitFinding = 1, kExitError = 2, kExitInterrupted = 130;

}  // namespace stageline
