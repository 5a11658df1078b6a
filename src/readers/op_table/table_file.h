// Reads one CSV file into rows.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/string_pool.h"
#include "readers/common/ops.h"
#include "readers/op_table/columns.h"

namespace stageline {
class Progress;
}

namespace stageline::op_table {

struct TableRows {
  std::vector<Op> ops;  // Op::lane is kind_lane()
  StringPool names;
  StringPool clocks;  // Op::clock is 1 + the id here: the column `clock`, or `machine` where there is none
  Diagnostics diagnostics;
  std::vector<int32_t> lossy_steps;  // of rows that were left out, in any order
  bool global_chunks = false;        // Op::chunk holds gmc, that is chunk · stages + stage
};

// Errors: as Input::open, and kBadInput when a required column is missing from the header.
Result<TableRows> read_table(const std::string& path, uint32_t file, Progress* progress);

}  // namespace stageline::op_table
