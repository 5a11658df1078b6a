// Schedule: the order in which every rank of a pipeline is meant to work. A schedule is a pure
// function of sizes (one file each in schedules/); simulation and recognition live in pipeline/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/kind.h"

namespace stageline {

// What a greedy planner believes that cells cost when it chooses the order, in any unit.
struct PlanCosts {
  int64_t forward = 50, input = 55, weight = 45, latency = 5;  // Paddle's ZBVPP pass
};

struct ScheduleSizes {
  int32_t stages = 4;         // p: ranks in the pipeline
  int32_t micro_batches = 8;  // m
  int32_t chunks = 1;         // v: model chunks per rank
  int32_t group = 0;          // interleaved schedules: micro-batches per group; 0 is the schedule's own default
  bool dw_detach = false;     // dualpipe-v-mindspeed: weight gradients of the cool-down apart from the input gradients
  PlanCosts plan = {};        // zbvpp  NOLINT(readability-redundant-member-init): GCC wants it
};

struct Action {
  CellKind kind;  // F, B, I or W
  int32_t micro_batch;
  int32_t chunk;
  bool operator==(const Action&) const = default;
};

// One action, or two that run as one overlapped cell (F first). 28 bytes, no allocation: large orders hold millions.
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

// Where the chunks of the model sit: virtual stage of (rank, chunk).
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
  std::vector<RankOrder> ranks = {};  // index: stage  NOLINT(readability-redundant-member-init): GCC wants it
};

// Virtual stage of a chunk, 0 … virtual_stage_count − 1: the place on the way of a micro-batch.
int32_t virtual_stage(const Schedule& schedule, int32_t rank, int32_t chunk);
// p·v; p where each micro-batch goes only one of two ways.
int32_t virtual_stage_count(const Schedule& schedule);

// "F3", "B1", with several chunks "F3.c1", overlapped "F3.c0&B1.c1".
std::string cell_text(const ScheduleCell& cell, bool with_chunk = true);

// What cells cost, in nanoseconds of one micro-batch on one chunk.
struct UnitCosts {
  int64_t forward_ns = 1'000'000, input_ns = 1'000'000, weight_ns = 1'000'000;
  int64_t backward_ns = 2'000'000;    // a whole B
  int64_t overlapped_ns = 3'000'000;  // an F&B cell
  int64_t latency_ns = 0;             // of a message between two ranks
  int64_t of(const ScheduleCell& cell) const;
};

// The descriptor of one schedule (see schedules/schedules.def).
struct ScheduleDef {
  const char* name;                     // "1f1b"
  const char* summary;                  // one line for help
  const char* source;                   // where the definition comes from
  int32_t default_chunks, most_chunks;  // equal: always that many; else 1 … most_chunks
  bool grouped;                         // takes ScheduleSizes::group
  Result<Schedule> (*make)(const ScheduleSizes& sizes);
  // Forwards in the list of a rank before its first B or I (the F of an overlapped cell comes before its B).
  int32_t (*warm_up)(const ScheduleSizes& sizes, int32_t rank);
  // The published bubble: its text, its value, and which of the two bubbles it speaks of.
  const char* bubble_text;
  double (*bubble_ns)(const ScheduleSizes& sizes, const UnitCosts& costs);
  bool bubble_is_inner;
  // Least micro-batches from which the published value is what the order does, at the costs that the text names (of
  // grouped schedules for whole groups only). nullptr: any number.
  int32_t (*bubble_least)(const ScheduleSizes& sizes);
  // The published peak of activations of one rank, in chunks: text and value.
  const char* activations_text;
  int64_t (*activations)(const ScheduleSizes& sizes, int32_t rank);
};

}  // namespace stageline
