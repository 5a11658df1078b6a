// Writes and reads orders as text: our own table (stage,index,kind,microbatch,chunk) and the CSV of PyTorch's pipeline
// schedules. Reads Paddle's too: what get_static_scheduler() returns, "f0;f1;b0;…", a line a stage.
#pragma once

#include "model/schedule.h"

namespace stageline {

// Writes one row per action; the two rows of an overlapped cell have the same (stage, index).
std::string order_csv(const Schedule& schedule);

// Writes the CSV that torch's `_load_csv` reads and torchtitan's `pipeline_parallel_schedule_csv` runs: one line per
// rank, one action per field, written as virtual stage, kind and micro-batch ("5F0", "0I3", "(0F4;7B2)OVERLAP_F_B").
// Errors: kUsage for the bidirectional layout, for which torch has no stages.
Result<std::string> torch_csv(const Schedule& schedule);

struct ReadOrder {
  Schedule schedule;
  int64_t left_out = 0;  // torch's actions that are not computation: messages, UNSHARD, RESHARD, REDUCE_GRAD
};

// Reads either of the two; the first line distinguishes them. The result passes check_order(), and replay() with equal
// costs. Stageline's table does not record the layout of chunks, so `layout` gives it. Without `layout`, a layout is
// taken under which the order runs; if there are several, the one with the shortest span at equal costs. `path` is
// named in messages. Errors: kBadInput with the line, kLimit for sizes beyond those of make_schedule().
Result<ReadOrder> read_order(std::string_view text, const std::string& path, std::optional<ChunkLayout> layout);

}  // namespace stageline
