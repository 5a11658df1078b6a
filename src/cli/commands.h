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

Result<int> run_report(const Arguments& arguments);
Result<int> run_explain(const Arguments& arguments);
Result<int> run_diff(const Arguments& arguments);
Result<int> run_analyze(const Arguments& arguments);
Result<int> run_export(const Arguments& arguments);
Result<int> run_export_stacks(const Arguments& arguments);
Result<int> run_align(const Arguments& arguments);
Result<int> run_what_if(const Arguments& arguments);
Result<int> run_sql(const Arguments& arguments);
Result<int> run_mcp(const Arguments& arguments);
Result<int> run_skill(const Arguments& arguments);
Result<int> run_record(const Arguments& arguments);
Result<int> run_digest(const Arguments& arguments);
Result<int> run_recover(const Arguments& arguments);
Result<int> run_tail(const Arguments& arguments);
Result<int> run_history(const Arguments& arguments);
Result<int> run_info(const Arguments& arguments);
Result<int> run_event(const Arguments& arguments);
Result<int> run_paddle_timeline(const Arguments& arguments);
Result<int> run_pp_chart(const Arguments& arguments);
Result<int> run_plan(const Arguments& arguments);
Result<int> run_schedule(const Arguments& arguments);
Result<int> run_simulate(const Arguments& arguments);
Result<int> run_view(const Arguments& arguments);
Result<int> run_help(const Arguments& arguments);
Result<int> run_completion(const Arguments& arguments);
Result<int> run_man(const Arguments& arguments);
Result<int> run_version(const Arguments& arguments);

inline constexpr int kExitGood = 0, kExitFinding = 1, kExitError = 2, kExitInterrupted = 130;

}  // namespace stageline
