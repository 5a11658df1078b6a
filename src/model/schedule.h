// Schedule: the order in which every rank of a pipeline is meant to work. A schedule is a pure
// function of sizes (one file each in schedules/); simulation and recognition live in pipeline/.
#pragma once

#include "model/kind.h"

namespace stageline {

inline constexpr int32_t kMaxPipelineStages = 4096;  // stages of one pipeline; more are taken for wrong labels

// Cell costs that a greedy planner assumes, in any unit; only their ratios matter.
struct PlanCosts {
  int64_t forward = 50, input = 55, weight = 45, latency = 5;  // the defaults of Paddle's ZBVPP pass
};

struct ScheduleSizes {
  int32_t stages = 4;         // p: ranks in the pipeline
  int32_t micro_batches = 8;  // m
  int32_t chunks = 1;         // v: model chunks per rank
  int32_t group = 0;       // for interleaved schedules: micro-batches in one group; 0 means the schedule's own default
  bool dw_detach = false;  // for dualpipe-v-mindspeed: in the cool-down, weight gradients are separate cells
  PlanCosts plan;          // zbvpp
};

struct Action {
  CellKind kind;  // F, B, I or W
  int32_t micro_batch;
  int32_t chunk;
  bool operator==(const Action&) const = default;
};

// One action, or two that run as one overlapped cell, of which F is given first. It takes 28 bytes and allocates
// nothing, since large orders hold millions.
class ScheduleCell {
 public:
  ScheduleCell(const Action& action) : actions_{action, action} {}  // NOLINT(google-explicit-constructor)
  ScheduleCell(const Action& first, const Action& second) : actions_{first, second}, count_(2) {}
  std::span<const Action> actions() const { return {actions_, static_cast<size_t>(count_)}; }
  bool overlapped() const { return count_ == 2; }
  bool operator==(const ScheduleCell&) const = default;

 private:
  Action actions_[2];
  int32_t count_ = 1;
};

// The layout of chunks: the virtual stage of the model that chunk c of rank r is.
enum class ChunkLayout : uint8_t {
  kLoop,           // chunk c of rank r is virtual stage c·p + r (VPP, breadth-first)
  kV,              // chunk 0 goes down, chunk 1 comes back up, and so on (ZB-V, DualPipeV)
  kBidirectional,  // chunk = direction: 0 enters at rank 0, 1 at rank p − 1; each micro-batch goes one way (DualPipe)
};
const char* layout_name(ChunkLayout layout);  // "loop", "v", "bidirectional"

using RankOrder = std::vector<ScheduleCell>;

struct Schedule {
  std::string name;
  ScheduleSizes sizes;
  ChunkLayout layout = ChunkLayout::kLoop;
  std::vector<RankOrder> ranks;  // index: stage
};

// Returns the virtual stage of a chunk, 0 … virtual_stage_count − 1: its place on the way of a micro-batch through the
// model.
int32_t virtual_stage(const Schedule& schedule, int32_t rank, int32_t chunk);
// Returns the number of virtual stages on a micro-batch's path: p·v, or p if each micro-batch takes one of two ways.
int32_t virtual_stage_count(const Schedule& schedule);

// Returns the cell as text: "F3", "B1"; with several chunks "F3.c1"; overlapped "F3.c0&B1.c1".
std::string cell_text(const ScheduleCell& cell, bool with_chunk = true);

// The costs of cells, in nanoseconds for one micro-batch on one chunk.
struct UnitCosts {
  int64_t forward_ns = 1'000'000, input_ns = 1'000'000, weight_ns = 1'000'000;
  int64_t backward_ns = 2'000'000;    // a whole B
  int64_t overlapped_ns = 3'000'000;  // an F&B cell
  int64_t latency_ns = 0;             // how long a message between two ranks takes
  int64_t of(const ScheduleCell& cell) const;
};

// The descriptor of one schedule (see schedules/schedules.def).
struct ScheduleDef {
  const char* name;     // "1f1b"
  const char* summary;  // one line for help
  const char* source;   // the source of the definition
  // Where both are equal the schedule always has that many chunks; else it takes 1 … max_chunks.
  int32_t default_chunks = 1, max_chunks = 1;
  bool grouped = false;  // whether it takes ScheduleSizes::group
  Result<Schedule> (*make)(const ScheduleSizes& sizes);
  // Returns how many forwards a rank does before its first B or I; of an overlapped cell, the F counts as before the B.
  int32_t (*warm_up)(const ScheduleSizes& sizes, int32_t rank);
  // The published bubble has its formula as text, its value, and a mark that says if it is the inner or the span's one.
  const char* bubble_text;
  double (*bubble_ns)(const ScheduleSizes& sizes, const UnitCosts& costs);
  bool bubble_is_inner = false;
  // Returns the minimum number of micro-batches from which the published value equals the bubble of the order, at the
  // costs that the text names. It assumes whole groups, for schedules with groups; nullptr: every number will do.
  int32_t (*bubble_min_micro_batches)(const ScheduleSizes& sizes) = nullptr;
  // The published peak of one rank's activations, counted in chunks: its formula as text and its value.
  const char* activations_text;
  int64_t (*activations)(const ScheduleSizes& sizes, int32_t rank);
};

}  // namespace stageline
