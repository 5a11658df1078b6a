// The tables of tb-distributed.
#pragma once

#include <cstdint>
#include <vector>

#include "analyses/tensorboard/tb_collectives.h"
#include "analyses/tensorboard/tb_run.h"

namespace stageline {

struct TbOverlap {  // parts of one step; they sum to its length
  int64_t computation_ns = 0, overlap_ns = 0, communication_ns = 0, other_ns = 0;
};
struct TbWait {  // parts of one step's communication; they sum to it
  int64_t transfer_ns = 0, synchronizing_ns = 0, unknown_ns = 0;
  int64_t message_transfer_ns = 0, message_wait_ns = 0;  // how much of the first two belongs to sends and receives
};

struct TbRankWork {
  int32_t rank = 0;
  std::vector<TbStep> steps;
  std::vector<TbOverlap> overlaps;  // for each step
  std::vector<TbWait> waits;        // for each step
  bool communicates = false;
  std::vector<TbCollective> calls;
};

std::vector<ColumnSpec> tb_overlap_columns(bool by_step);
std::vector<ColumnSpec> tb_wait_columns(bool by_step);
std::vector<ColumnSpec> tb_collectives_columns();
std::vector<ColumnSpec> tb_sizes_columns();

// Returns the tables in the descriptor's order. `brief` leaves out those with a row for each step.
std::vector<Table> distributed_tables(const TbRun& run, const std::vector<TbRankWork>& ranks, bool brief);

}  // namespace stageline
