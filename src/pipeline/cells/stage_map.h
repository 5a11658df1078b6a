// Maps the stage numbers that names contain to ranks and chunks.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule.h"
#include "pipeline/cells/cell_mark.h"

namespace stageline {

struct StageMap {
  int32_t stages = 0;   // ranks of one pipeline; 0 when names contain no stages
  int32_t chunks = 1;   // virtual stages of a rank
  bool regular = true;  // false for neither a loop nor a V; then a chunk is a position in the rank's own list
  ChunkLayout layout = ChunkLayout::kLoop;
  std::vector<int32_t> stage;             // for each part; kUnknown when not known
  std::vector<std::vector<int32_t>> own;  // for each part its virtual stages, ascending
  // kUnknown when the part does not have that virtual stage.
  int32_t chunk_of(size_t part, int32_t virtual_stage) const;
};

// In a loop virtual stage s is on rank s mod p. In a V rank r has r and 2p − 1 − r, and so on in zigzag. `hint` is the
// number of stages where it is known otherwise, else 0; it decides where so few ranks are there that both layouts fit.
// O(marks log marks).
StageMap map_stages(const Trace& trace, const std::vector<CellMark>& marks, int32_t hint);

}  // namespace stageline
