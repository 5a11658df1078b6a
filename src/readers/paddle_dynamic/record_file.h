// Reads one file of timestamps into rows.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/string_pool.h"
#include "readers/common/ops.h"

namespace stageline {
class Progress;
}

namespace stageline::paddle_dynamic {

struct RecordOps {
  std::vector<Op> ops;
  StringPool names;
  Diagnostics diagnostics;
  int32_t ranks = 0;  // a joined file has several; Op::rank counts them from 0 in order of appearance
};

// `rank` is the global rank in the file's name; kUnknown for a joined file, whose ranks are distinguished by stage and
// by times that go back. Errors: as Input::open.
Result<RecordOps> read_records(const std::string& path, uint32_t file, int32_t rank, Progress* progress);

}  // namespace stageline::paddle_dynamic
