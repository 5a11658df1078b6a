// The rows that ranges of a schedule's run would show, rank by rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/schedule.h"
#include "pipeline/cells/range_rows.h"

namespace stageline {

struct ExpectedRow {
  CellKind kind = CellKind::kForward;  // F, B (also I), W or F&B: what a range's name can tell
  bool head = false;                   // the backward of the loss, a range of its own before its micro-batch's B
  Action actions[2] = {};
  int32_t action_count = 1;
};

// A schedule as a hypothesis about ranges.
struct RowHypothesis {
  Schedule schedule;
  bool logits = false;  // MindSpeed's DualPipeV: stage 0 marks the backward of the loss apart
  bool offset = false;  // chunk c's micro-batch i is written c·m + i
  std::vector<std::vector<ExpectedRow>> stages;
};

// Forwards of a micro-batch on one rank: where micro-batches run both ways, each passes a rank once.
int32_t chunks_of_a_micro_batch(const Schedule& schedule);

std::vector<ExpectedRow> expected_rows(const Schedule& schedule, int32_t stage, bool logits);

// Whether a recorded row can be this one, by kind and by the numbers it says.
bool can_be(const RangeRow& found, const ExpectedRow& expected, bool offset, int32_t micro_batches);

// What may have run: schedules whose chunks, kinds and number of forwards per step fit. `forwards`: of a step of one
// rank, `largest`: micro-batch number said anywhere (kUnknown: none). `named`: the schedule that metadata name, put
// first. `chunks_said`: by messages, 0: unknown.
struct HypothesisFacts {
  int32_t stages = 0;
  int32_t forwards = 0;
  int32_t largest = kUnknown;
  int32_t chunks_said = 0;
  bool overlaps = false, weights = false;
  std::string named;
};
std::vector<RowHypothesis> row_hypotheses(const HypothesisFacts& facts);

// "F3", "B1.c1", "the loss's backward of 3", "W0.c1", "F3.c0&B1.c1".
std::string row_text(const ExpectedRow& row, bool with_chunk);

}  // namespace stageline
