// The commands. Each returns an exit code: 0 for success, 1 for a finding (--fail-on), 2 for an error.
#pragma once

#include "cli/flags.h"

// Lists what `stageline record` records without a change of the program, as docs/reference/record-python.md does. It is
// for help and messages, which are literals.
#define STAGELINE_RECORDED                                                                                         \
  "torch.distributed.pipelining, DDP, FSDP and FSDP2 (also under transformers' Trainer, Accelerate, Lightning or " \
  "torchtitan), torch.compile, Megatron-Core, MindSpeed, DeepSpeed or Paddle"

namespace stageline {

int run_report(const Arguments& arguments);
int run_explain(const Arguments& arguments);
int run_diff(const Arguments& arguments);
int run_analyze(const Arguments& arguments);
int run_export(const Arguments& arguments);
int run_export_stacks(const Arguments& arguments);
int run_align(const Arguments& arguments);
FlagNames with_open(std::string_view names);  // these flags, separated by blanks, and those of open_run()
Command what_if_command();
Command sql_command();
int run_sql(const Arguments& arguments);
int run_mcp(const Arguments& arguments);
int run_skill(const Arguments& arguments);
int run_record(const Arguments& arguments);
int run_digest(const Arguments& arguments);
int run_recover(const Arguments& arguments);
int run_tail(const Arguments& arguments);
int run_history(const Arguments& arguments);
int run_info(const Arguments& arguments);
int run_event(const Arguments& arguments);
int run_paddle_timeline(const Arguments& arguments);
int run_pp_chart(const Arguments& arguments);
int run_schedule(const Arguments& arguments);
int run_simulate(const Arguments& arguments);
int run_view(const Arguments& arguments);
int run_help(const Arguments& arguments);
int run_completion(const Arguments& arguments);
int run_man(const Arguments& arguments);
int run_version(const Arguments& arguments);

inline constexpr int kExitGood = 0, kExitFinding = 1, kExitError = 2, kExitInterrupted = 130;

}  // namespace stageline
