// Computes which rows the ranges of a run that follows a schedule would show, on each rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/schedule.h"
#include "pipeline/cells/range_rows.h"

namespace stageline {

struct ExpectedRow {
  CellKind kind = CellKind::kForward;  // F, B (which also stands for I), W or F&B: all that a range's name can show
  bool head = false;  // the row is the backward of the loss, a range of its own before the B of its micro-batch
  Action actions[2] = {};
  int32_t action_count = 1;
};

// A schedule, and how its ranges may be written: a hypothesis to compare recorded ranges with.
struct RowHypothesis {
  Schedule schedule;
  bool logits = false;  // MindSpeed's DualPipeV: stage 0 marks the backward of the loss with a range of its own
  bool apart = false;   // MindSpeed without --moe-fb-overlap: each overlapped pair runs as a forward, then a backward
  bool offset = false;  // micro-batch i of chunk c is written as c·m + i
  std::vector<std::vector<ExpectedRow>> stages;
};

// Returns how many forwards a micro-batch has on one rank. Where micro-batches run in both directions, each passes a
// rank once.
int32_t chunks_of_a_micro_batch(const Schedule& schedule);

std::vector<ExpectedRow> expected_rows(const RowHypothesis& hypothesis, int32_t stage);

// Returns true when the recorded row can be the expected one, judged by its kind and the numbers it gives.
bool can_be(const RangeRow& found, const ExpectedRow& expected, bool offset, int32_t micro_batches);

// Facts of a run that limit the schedules that it may have followed, by their chunks, kinds and number of forwards per
// step. `forwards` is the number of forwards of one rank in a step, `largest` the largest micro-batch number of any row
// (kUnknown when none has one). `named` is the schedule that metadata name; it comes first. `chunks_known` is the
// number of chunks that messages give, 0 when unknown.
struct HypothesisFacts {
  int32_t stages = 0;
  int32_t forwards = 0;
  int32_t largest = kUnknown;
  int32_t chunks_known = 0;
  bool overlaps = false, weights = false;
  std::string named;
};
std::vector<RowHypothesis> row_hypotheses(const HypothesisFacts& facts);

// Returns a row as text: "F3", "B1.c1", "the loss's backward of 3", "W0.c1", "F3.c0&B1.c1".
std::string row_text(const ExpectedRow& row, bool with_chunk);

}  // namespace stageline
