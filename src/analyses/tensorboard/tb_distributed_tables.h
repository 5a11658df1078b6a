// The tables of tb-distributed.
#pragma once

#include <cstdint>
#include <vector>

#include "model/table.h"
#include "profile/tb_work.h"

namespace stageline {

std::vector<ColumnSpec> tb_overlap_columns(bool by_step);
std::vector<ColumnSpec> tb_wait_columns(bool by_step);
std::vector<ColumnSpec> tb_collectives_columns();
std::vector<ColumnSpec> tb_sizes_columns();

// Returns the tables in the descriptor's order. `brief` leaves out those with a row for each step.
std::vector<Table> distributed_tables(const TbRun& run, const std::vector<TbRankWork>& ranks, bool brief);

}  // namespace stageline
