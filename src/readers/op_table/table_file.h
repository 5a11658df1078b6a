// One CSV file becomes rows.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/string_pool.h"
#include "model/ops.h"
#include "readers/op_table/columns.h"

namespace stageline {
class Progress;
}

namespace stageline::op_table {

struct TableRows {
  std::vector<Op> ops;  // lane: kind_lane()
  StringPool names;
  Diagnostics diagnostics;
  bool global_chunks = false;  // Op::chunk holds gmc: chunk · stages + stage
};

// Errors: as Input::open, and kBadInput when the header lacks a column that is needed.
Result<TableRows> read_table(const std::string& path, uint32_t file, Progress* progress);

}  // namespace stageline::op_table
