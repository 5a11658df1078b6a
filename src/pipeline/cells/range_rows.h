// Rows of pipeline work: ranges (mstx, NVTX) that say what they are and have a device side. And what is found out about
// them: their steps, the schedule that they prove, and their messages.
#pragma once

#include "model/schedule.h"
#include "model/trace.h"
#include "pipeline/cells/cell_rules.h"

namespace stageline {

// Finds rows of pipeline work: ranges (mstx, NVTX) that say what they are and have a device side.
//
//   range of the host ──partner──▶ interval on the device ──▶ RangeRow, ordered by start on the device
//
// The range on the host only says what the row is; its times are those on the device. A row has one of a pipeline's
// four kinds (F, B, F&B, W) or, by the user's own rules, any other kind that makes a cell.
struct RangeRow {
  uint32_t slice = kNoSlice;  // the range on the host; a click on the cell leads there
  int64_t start_ns = 0, end_ns = 0;
  int64_t host_ns = 0;  // start on the host, which STEP_TIME refers to
  CellKind kind = CellKind::kOther;
  bool whole = true;  // false for a backward whose W may run apart, so that it may be an I
  // As the range says; kUnknown when it does not.
  int32_t micro_batch = kUnknown, chunk = kUnknown, stage = kUnknown, step = kUnknown;
  int32_t other_micro_batch = kUnknown, other_chunk = kUnknown;  // for F&B: the same of its backward
};

struct RangeRows {
  std::vector<std::vector<RangeRow>> parts;  // for each part, in order of start on the device
  std::string set, example;  // the set of rules that matched, and a name that did; "" when nothing is pipeline work
  int64_t names = 0, ranges = 0;  // how many names and ranges are pipeline work
  int64_t without_device = 0, nested = 0, empty_pops = 0, out_of_range = 0;
  int32_t empty_pop_part = kUnknown;  // the first part with an empty pop
  // Where the names of forwards or of backwards are missing: how many names and ranges no rule knows, and one of them.
  int64_t unknown_names = 0, unknown_ranges = 0;
  std::string unknown_example;
};

// Ranges of the domain "communication" are not rows. The user's rules come first, then the names that Megatron and
// MindSpeed give their ranges, then the other sets. A set that covers forwards and backwards comes before those that
// cover one of them. Rules for any name are used only if the job is `staged`, a pipeline by other evidence. Of nested
// ranges of pipeline work the outermost counts. A WeightGradStore.pop whose store was empty is dropped and counted.
// Such a pop follows a backward at once. It is shorter than 5 µs and than 2 % of the median backward, or shorter than 2
// % of the median pop. O(ranges log ranges + names · rules).
RangeRows find_range_rows(const Trace& trace, const CellRules& rules, bool staged = false);

// The rows [begin, end) that one part has in one step.
struct RowList {
  uint32_t part = 0;
  int32_t step = kUnknown;
  size_t begin = 0, end = 0;
  int32_t forwards = 0;  // how many F and F&B it has
  bool guessed = false;  // neither STEP_TIME nor a message gives the step; the list was cut by the number of forwards
  bool first = false, last = false;  // first or last list of its part, so the recording may have cut it
};

struct RowLists {
  std::vector<RowList> lists;  // ordered by part, then row
  int32_t forwards = 0;        // forwards of most lists
  int64_t guessed = 0;         // how many lists have no recorded step
  bool any_recorded = false;   // STEP_TIME or messages name at least some steps
};

// A row's step is the STEP_TIME that contains the range's start on the host, else the step that messages give. Rows
// outside of these are cut into lists where a step's number of forwards is reached. That number is the one most
// recorded steps have, or, without recorded steps, the period with which kinds and given micro-batches repeat on most
// ranks. Lists that were cut continue the numbers of the recorded ones. Without recorded steps they are numbered from
// 0, such that the last lists of all ranks are the same step. O(rows).
RowLists find_row_lists(const Trace& trace, const RangeRows& rows);

// Computes which rows the ranges of a run that follows a schedule would show, on each rank.
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

// Checks whether the labels put on rows can be true: no work begins before what it waits for has ended.

// One direction of one labelled row, as a stop on the way of its micro-batch.
struct RowStop {
  uint64_t way = 0;    // the pipeline and the step
  uint64_t place = 0;  // the direction, micro-batch and virtual stage
  int64_t start_ns = 0, end_ns = 0;
  uint32_t part = 0, row = 0;
};

// Returns the pipeline of each part: parts with the same (dp, position within the stage), one for each stage. kUnknown
// where the stage is.
std::vector<int32_t> pipeline_of_parts(const Trace& trace);

// The clocks of two devices of one machine differ by at most this.
inline constexpr int64_t kSameHostSlackNs = 100'000;

class RowOrder {
 public:
  RowOrder(const Trace& trace, const RangeRows& rows, const Schedule& shape)
      : trace_(trace), rows_(rows), shape_(shape), pipeline_(pipeline_of_parts(trace)) {}

  // Adds the stops of a labelled row. The constructor's `shape` is the schedule whose layout of chunks is used.
  void add(const RowList& list, uint32_t row, const ExpectedRow& label);
  void finish();

  struct Verdict {
    int64_t checked = 0, wrong = 0;
    std::vector<std::pair<uint32_t, uint32_t>> rows;  // (part, row) of the pairs that contradict the order
  };
  // Checks every pair of neighbours on the way of a micro-batch. On one clock, the second must not begin before the
  // first ends. Between two clocks there must be some offset with which all pairs of a step are in order. O(stops).
  Verdict check() const;

  // Returns how many neighbours on the same clock contradict this label for this row, and how many there are.
  std::pair<int, int> against(const RowList& list, uint32_t row, const ExpectedRow& label) const;

  const std::vector<RowStop>& stops() const { return stops_; }
  int32_t vstage_count() const { return virtual_stage_count(shape_); }

 private:
  void stops_of(const RowList& list, uint32_t row, const ExpectedRow& label, std::vector<RowStop>& out) const;
  const RowStop* find(uint64_t way, uint64_t place) const;

  const Trace& trace_;
  const RangeRows& rows_;
  const Schedule& shape_;
  std::vector<int32_t> pipeline_;
  std::vector<RowStop> stops_;
};

// Finds micro-batch and chunk of rows, from what the rows say or from a schedule that they prove.
//
// No row is labelled for its position alone. A schedule is proven when three conditions hold. Every rank's rows are the
// schedule's, or become so by few edits that are reported. No number that a row gives contradicts it. With its labels
// no work starts before its input is ready. Where several schedules are proven, a row gets the label they agree on.

// Where the rows of one rank in one step leave the schedule.
struct OffSchedule {
  uint32_t part = 0;
  int32_t step = kUnknown;
  int64_t row = 0;              // row of the step, from 0
  int32_t edits = 0;            // rows missing plus rows too many
  std::string expected, found;  // "F3.c1", "F3.c0&B1.c1", "B"; "" where that list has ended
  Text why;
  uint32_t found_row = UINT32_MAX;  // row of the part; UINT32_MAX where the list has ended
  // Rows that have no mark although the recording was running, and how long they take by the other rows of their kind
  // in this step.
  int64_t lost = 0, lost_ns = 0;
  std::string lost_first;  // the first of them, "F3.c1"
};

struct RangeLabels {
  // The proven schedule, once for each number of micro-batches that steps have; empty when none was proven.
  std::vector<RowHypothesis> made;
  // The meaning of each row of each part; action_count is 0 if it stays unknown.
  std::vector<std::vector<ExpectedRow>> rows;
  std::vector<char> list_proven;  // for each list
  std::vector<OffSchedule> off;
  int64_t labelled = 0, unknown = 0;  // counts of compute rows
  // Pairs of neighbours in causal order that were checked, and those that contradict it.
  int64_t checked = 0, wrong = 0;
  int32_t fitting = 0;  // how many schedules are proven; rows have labels where all of them agree
  int32_t chunks = 1;   // the most chunks that one of them has
  Text why_not;         // the reason, where no schedule was proven
  bool proven() const { return !made.empty(); }
};

// Expects that parts have their stages. `named` is the schedule that metadata name, or "". O(rows · schedules), and
// O(edits · rows) for rows that leave the schedule.
RangeLabels label_rows(const Trace& trace, const RangeRows& rows, const RowLists& lists, const std::string& named);

struct RangeMessages {
  std::vector<Cell> cells;
  int64_t messages = 0;    // how many sends and receives were recorded
  int64_t unknown = 0;     // how many of them became no cell, as peer or direction is not known
  int64_t unlabelled = 0;  // how many cells have no micro-batch
};

// Every send carries the result of a labelled row, and every receive brings what a labelled row waits for. Between two
// ranks, messages arrive in the order in which the receiver needs them, so the k-th message of a step is the k-th
// needed. Counting starts from the step's end where the recording lost its first messages. A pair must be possible in
// time: no receive ends after the work that waits for it begins, and no send begins before its result is made. If
// operations do not name their peer, the first and the last stage have only one neighbour. Elsewhere a pair is made
// only if no other order explains the operations as well. For batchSendRecv, a result leaves with the first operation
// after it, and an input comes with the last operation before its work. If rows have no labels and ranks have one
// chunk, the peer's stage gives the direction. `order` must be finished. O(messages log messages + stops).
RangeMessages find_range_messages(const Trace& trace, const RowLists& lists, const RangeRows& rows,
                                  const RowOrder& order, int32_t chunks);

}  // namespace stageline
