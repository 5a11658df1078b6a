// Links sends and receives that do not name their peer (Level_none of older torch_npu). The pipeline's cells identify
// them: a send carries the result of one micro-batch, and the receive is the one whose cell waits for it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/trace.h"

namespace stageline {

struct NamelessOp {
  int64_t row = 0;  // index into RankTables::ops
  int64_t start_ns = 0, end_ns = 0;
  bool send = false;
  int64_t place = -1;  // position of this rank in the group
  std::string group;
};

// Returns for each part, as `ops` has them, row → link. A link is "<tag>_<source>_<destination>_<k>", in which k counts
// the sends between two ranks. Links exist only where both ends are cells of one step and micro-batch whose work is
// linked. O(cells log cells).
std::vector<std::vector<std::pair<int64_t, std::string>>> link_by_cells(
    const Trace& trace, const std::vector<std::vector<NamelessOp>>& ops);

}  // namespace stageline
