// Ops are rows of a source that names pipeline operations one by one (timeline events, table rows). They are gathered
// in any order and then made into the parts, lanes, slices and cells of a Trace:
//
//   source rows ──▶ Op[] ──▶ resolve_ranks ──▶ number_* ──▶ lay_steps_* ──▶ build_parts ──▶ Trace
//
// Inferences on the way are counted in Diagnostics under "<format>.<fact>".
#pragma once

#include "model/source_limits.h"
#include "model/trace.h"

namespace stageline {

struct Op {
  int64_t start_ns = 0, end_ns = 0;
  int32_t rank = kUnknown, dp = kUnknown, stage = kUnknown;
  int32_t step = kUnknown, chunk = kUnknown, micro_batch = kUnknown;
  int32_t sequence = kUnknown;  // position among the rank's operations of this type, where the source counts them
  StringId name_id = 0;
  uint32_t lane = 0;        // index into the lane names
  uint32_t file = 0;        // index into the source's files
  uint32_t file_index = 0;  // position in the file
  CellKind kind = CellKind::kOther;
  bool is_cell = true;
  uint16_t clock = 0;  // that stamped it, by a number of the source's own from 1 on; 0 where the source names none
};

// Appends the operations of one file, whose names are ids in `names`, to those of the run.
void append_ops(std::vector<Op> of_file, const StringPool& names, Trace& trace, std::vector<Op>& ops);

// Fills in what identifies a row's rank, then sees to it that a rank is one place of the pipeline:
// - a missing rank is the rank that others give for the same (stage, dp), else stage·dp_count + dp (Megatron's order).
//   A missing stage or dp is copied from others of that rank;
// - a missing dp is the position among the ranks of one stage;
// - one number used for several (stage, dp) is made unique by (stage, dp, rank).
// Rows that stay without a rank are removed and counted.
void resolve_ranks(std::vector<Op>& ops, std::string_view format, Diagnostics& diagnostics);

// Numbers forward and backward cells that have no micro-batch: by their start, within each (rank, step, kind, chunk),
// and only where no cell of that group has a number.
void number_compute(std::vector<Op>& ops, std::string_view format, Diagnostics& diagnostics);

// Gives a message without micro-batch the one of its forward or backward, if this is certain. Three conditions must
// hold. The rank has one chunk. The step has as many messages of that type as forwards (or backwards), in the order in
// which the source counts them. Every send starts after its cell started, and every receive ends before its cell ended.
// Otherwise the micro-batch stays unknown.
void number_messages(std::vector<Op>& ops, std::string_view format, Diagnostics& diagnostics);

// Returns true when the steps' own times show that the source restarts its clock at every step. Then more than half of
// the steps of a rank start before the middle of the rank's previous step. Ranks must be resolved. O(ops log steps).
bool steps_restart(const std::vector<Op>& ops);
// Puts steps one after another without a gap, each keeping its own times; the first begins at 0. `min_ns` gives lower
// bounds for the length of steps whose clock starts at the step's own zero. Returns false, and changes nothing, when
// the result would leave ±kMaxTimeNs.
bool lay_steps_end_to_end(std::vector<Op>& ops, const std::map<int32_t, int64_t>* min_ns = nullptr);

// The names of the lanes that kind_lane() numbers, for sources that do not name lanes themselves.
std::vector<std::string> kind_lane_names();

// Makes parts (ordered by rank), lanes and sorted cells of the ops. `sources[op.file]` becomes Part::source. `ops` is
// empty then: its room is given back before the cells are put in order.
void build_parts(std::vector<Op>& ops, const std::vector<std::string>& lanes, const std::vector<std::string>& sources,
                 Trace& trace);

// Counts compute cells that repeat the (rank, step, kind, chunk, micro-batch) of another, as happens when two ranks'
// files carry the same rank number. Such cells are kept.
void count_duplicates(const Trace& trace, std::string_view format, Diagnostics& diagnostics);

}  // namespace stageline
