// From the stage numbers in names to ranks and chunks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/schedule.h"
#include "pipeline/cells/cell_mark.h"

namespace stageline {

struct StageMap {
  int32_t stages = 0;   // ranks of one pipeline; 0: names say no stages
  int32_t chunks = 1;   // virtual stages of a rank
  bool regular = true;  // false: neither a loop nor a V; chunks are positions in the rank's own list
  ChunkLayout layout = ChunkLayout::kLoop;
  std::vector<int32_t> stage;                                  // by part; kUnknown
  std::vector<std::vector<int32_t>> own;                       // by part: its virtual stages, ascending
  int32_t chunk_of(size_t part, int32_t virtual_stage) const;  // kUnknown when it is none of the part's
};

// Loop: virtual stage s is on rank s mod p; V: rank r has r and 2p − 1 − r, and so on in zigzag. `hint`: number of
// stages as known otherwise (0: not), which decides where few ranks leave both open. O(marks log marks).
StageMap map_stages(const Trace& trace, const std::vector<CellMark>& marks, int32_t hint);

}  // namespace stageline
