// The tables of tb-distributed, in both modes.
#pragma once

#include <cstdint>
#include <vector>

#include "analyses/tensorboard/tb_collectives.h"
#include "analyses/tensorboard/tb_plugin_waits.h"
#include "analyses/tensorboard/tb_run.h"

namespace stageline {

struct TbOverlap {  // of one step; they add up to it
  int64_t computation_ns = 0, overlap_ns = 0, communication_ns = 0, other_ns = 0;
};
struct TbWait {  // of one step; they add up to its communication
  int64_t transfer_ns = 0, synchronizing_ns = 0, unknown_ns = 0;
  int64_t message_transfer_ns = 0, message_wait_ns = 0;  // of the first two: sends and receives
  int32_t step = -1;                                     // --compat tb: index of the rank's steps; −1 in none
};

struct TbRankWork {
  int32_t rank = 0;
  std::vector<TbStep> steps;
  std::vector<TbOverlap> overlaps;  // by step
  std::vector<TbWait> waits;        // by step; --compat tb: of the steps that have calls
  bool communicates = false;
  std::vector<TbCollective> calls;  // ours
  PluginCalls plugin;               // --compat tb
};

Status split_plugin_ranks(const TbRun& run, std::vector<TbRankWork>& ranks);  // as split_plugin_calls

std::vector<ColumnSpec> tb_overlap_columns(bool by_step);
std::vector<ColumnSpec> tb_wait_columns(bool by_step);
std::vector<ColumnSpec> tb_collectives_columns();
std::vector<ColumnSpec> tb_sizes_columns();

// In the descriptor's order; `brief`: without those that have a row per step.
std::vector<Table> distributed_tables(const TbRun& run, const std::vector<TbRankWork>& ranks, bool brief);
std::vector<Table> plugin_distributed_tables(const TbRun& run, const std::vector<TbRankWork>& ranks, bool brief);

}  // namespace stageline
