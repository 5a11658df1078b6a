// Schedule: the order in which every rank of a pipeline is meant to work. A schedule is a pure
// function of sizes (one file each in schedules/); simulation and recognition live in pipeline/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/kind.h"

namespace stageline {

struct ScheduleSizes {
  int32_t stages = 4;         // p: ranks in the pipeline
  int32_t micro_batches = 8;  // m
  int32_t chunks = 1;         // v: model chunks per rank
};

struct Action {
  CellKind kind;  // F, B, I or W
  int32_t micro_batch;
  int32_t chunk;
  bool operator==(const Action&) const = default;
};

// One or two actions that run as one overlapped cell.
struct ScheduleCell {
  std::vector<Action> actions;
};

// Where the chunks of the model sit: virtual stage of (rank, chunk).
enum class ChunkLayout : uint8_t {
  kLoop,  // chunk c of rank r is virtual stage c·p + r (VPP, breadth-first)
  kV,     // chunk 0 goes down, chunk 1 comes back up (ZB-V, DualPipeV)
};

using RankOrder = std::vector<ScheduleCell>;

struct Schedule {
  std::string name;
  ScheduleSizes sizes;
  ChunkLayout layout = ChunkLayout::kLoop;
  std::vector<RankOrder> ranks;  // index: stage
};

// Virtual stage of a chunk, 0 … p·v − 1.
int32_t virtual_stage(const Schedule& schedule, int32_t rank, int32_t chunk);

// The descriptor of one schedule (see schedules/schedules.def).
struct ScheduleDef {
  const char* name;     // "1f1b"
  const char* summary;  // one line for help
  const char* source;   // where the definition comes from
  bool chunked;         // takes --chunks above 1
  Result<Schedule> (*make)(const ScheduleSizes& sizes);
};

}  // namespace stageline
