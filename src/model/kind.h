// CellKind: what a pipeline cell does. The names are the field's own (see docs/model.md):
// B is the full backward, I its input-gradient half, W its weight-gradient half.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

enum class CellKind : uint8_t {
  kForward,          // F
  kBackward,         // B = I + W in one piece
  kInputGrad,        // I
  kWeightGrad,       // W
  kForwardBackward,  // F&B, one overlapped cell
  kSendForward,      // SF, activations to the next stage
  kRecvForward,      // RF
  kSendBackward,     // SB, gradients to the previous stage
  kRecvBackward,     // RB
  kCollective,       // C, any data- or tensor-parallel collective
  kOptimizer,        // O
  kOther,            // everything else (gc, learning-rate schedule, unknown jobs)
};
inline constexpr int kCellKindCount = 12;

// Kinds of one group share a colour in every drawing.
enum class KindGroup : uint8_t { kForward, kBackward, kWeight, kMessage, kCollective, kOptimizer, kOther };

std::string_view kind_code(CellKind kind);  // "F", "B", "I", "W", "F&B", "SF", …, "C", "O", "other"
std::string_view kind_name(CellKind kind);  // "forward", "backward", "input grad", …
std::optional<CellKind> kind_from_code(std::string_view code);
KindGroup kind_group(CellKind kind);

// Returns true for F, B, I, W and F&B: the work that schedules arrange and that bubbles are measured against.
constexpr bool is_compute(CellKind kind) { return kind <= CellKind::kForwardBackward; }
// Returns true for B and I: the previous stage waits for their gradient, and they free a micro-batch's activations.
constexpr bool is_backward(CellKind kind) { return kind == CellKind::kBackward || kind == CellKind::kInputGrad; }
constexpr bool is_message(CellKind kind) { return kind >= CellKind::kSendForward && kind <= CellKind::kRecvBackward; }
constexpr bool is_send(CellKind kind) { return kind == CellKind::kSendForward || kind == CellKind::kSendBackward; }
constexpr bool is_receive(CellKind kind) { return kind == CellKind::kRecvForward || kind == CellKind::kRecvBackward; }
// Returns true for SF and RF, the messages of activations.
constexpr bool is_of_forward(CellKind kind) { return kind == CellKind::kSendForward || kind == CellKind::kRecvForward; }
// The three kinds of work that a micro-batch has on a chunk: 0 forward, 1 backward (B or I), 2 weight gradient.
constexpr size_t direction_of(CellKind kind) {
  return kind == CellKind::kForward ? 0 : kind == CellKind::kWeightGrad ? 2 : 1;
}

// Lane within a rank, by kind: 0 compute and optimizer, 1 messages, 2 collectives, 3 other.
// Lanes may overlap each other in time; cells within one lane should not.
constexpr int kLaneCount = 4;
int kind_lane(CellKind kind);
std::string_view lane_name(int lane);  // "compute", "messages", "collectives", "other"

// True for compute, collectives and the optimizer. Messages do not count, as they may be posted while the previous step
// still runs. Rows of kind "other" (loading data, a checkpoint) do not either, as they may lie between steps.
constexpr bool is_step_work(CellKind kind) {
  return is_compute(kind) || kind == CellKind::kCollective || kind == CellKind::kOptimizer;
}

}  // namespace stageline
