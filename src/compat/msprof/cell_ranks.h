// Tables of every rank from the pipeline's cells: blocks with what is known of each cell, and links from who sends to
// whom.
#pragma once

#include "compat/msprof/chart.h"
#include "compat/msprof/rank_tables.h"

namespace stageline {

// Makes blocks of StepTaskInfo from the cells of a pipeline; every name says what is known of the cell.
struct LabelPlan {
  bool dualpipev = false;
  bool apart = false;         // nothing is overlapped: a forward and a backward stand for each pair
  int32_t micro_batches = 0;  // micro-batches of a step; micro-batch i of chunk c is written as c·m+i. 0 when not known
  int32_t stages = 0;
};
// Uses the profile (pp_info), the user's options ("" and 0 stand for nothing) and the cells themselves.
LabelPlan label_plan(const Trace& trace, const std::string& schedule, int32_t micro_batches);

struct CellLabels {
  StepTasks blocks;
  int64_t unlabelled = 0;            // blocks whose micro-batch is not known: "F", "B", "W", "F+B"
  std::vector<std::string> remarks;  // where the first step that differs from DualPipeV's order does so, and why
};
// Returns the blocks of one part in order of start, of all steps or of one. For 1F1B and similar schedules names are
// "3F" and "3B", with types 0 and 1. For DualPipeV they are the names and phases of dualpipev_rows.h, chosen by what a
// block is and not by where it stands. `overlapped` is overlapped_pairs(cells); `cells` are those of the part, in the
// trace's order.
CellLabels label_cells(const Trace& trace, int32_t part, std::span<const uint32_t> cells,
                       const std::vector<uint32_t>& overlapped, const LabelPlan& plan, const int64_t* only_step);

// Links sends and receives that do not name their peer (Level_none of older torch_npu). The pipeline's cells identify
// them: a send carries the result of one micro-batch, and the receive is the one whose cell waits for it.
struct NamelessOp {
  int64_t row = 0;  // index into RankTables::ops
  int64_t start_ns = 0, end_ns = 0;
  bool send = false;
  int64_t place = -1;  // position of this rank in the group
  std::string group;
};

// Returns for each part, as `ops` has them, row → link. A link is "<tag>_<source>_<destination>_<k>", in which k counts
// the sends between two ranks. Links exist only where both ends are cells of one step and micro-batch whose work is
// linked. O(cells log cells).
std::vector<std::vector<std::pair<int64_t, std::string>>> link_by_cells(
    const Trace& trace, const std::vector<std::vector<NamelessOp>>& ops);

// Finds which send of one rank is which receive of another, over all ranks. A link is a text that occurs at both ends
// and nowhere else.
struct RankPeers {
  int32_t rank = 0;
  // Distinguishes ranks of different pipelines whose groups have the same name: "[0,2,4,6]"; "" when unknown.
  std::string pipeline;
  std::vector<PeerOp> ops;  // ordered by start
};

struct PairedLinks {
  std::vector<std::vector<std::pair<int64_t, std::string>>> by_rank;  // row number → link
  std::vector<std::string> remarks;  // one sentence for each that could not be paired, at most kMaxRemarks
  int64_t pairs = 0;
  static constexpr size_t kMaxRemarks = 8;
};

// The k-th send from one rank of a group to another is the k-th receive there. One end may have recorded fewer, because
// its window started later or ended earlier. Then the shift is chosen under which both ends of all pairs end together,
// up to one offset of clocks. Texts have the form of msprof-analyze's, "<tag>_<source>_<destination>_<k>", for batches
// "…_b<k>". O(operations · shifts), with at most kMaxShifts shifts.
inline constexpr size_t kMaxShifts = 256;
PairedLinks pair_links(const std::vector<RankPeers>& ranks);

// Reports forwards without a backward, since a chart of such a profile looks complete and is not. The usual case is
// MindSpeed's DualPipeV without --moe-fb-overlap, where the functions that were marked are not the ones that run
// backwards. Counts them, and names rank and step of the first one in `notes` (pp_chart.no_backwards). A rank's last
// step may have been cut by the end of the profile, so it counts only where the rank has no other. O(cells).
void say_missing_backwards(const Trace& trace, Diagnostics& notes);

// Makes our own tables of every rank: blocks from the pipeline's cells, and links from who sends to whom.
using CellRanks = std::vector<RankTables>;

// Fills the ranks of `chart`, except for what was written. A rank that cannot be read gets an error, and the others are
// labelled nevertheless. Where a rank has no cells, its forward and backward ranges get the names F and B and count as
// unlabelled. `finding` has the notes from looking for the databases, since opening the profile notes the same again.
CellRanks label_ranks(const PpChartOptions& options, const std::vector<RankDatabase>& ranks, const Diagnostics& finding,
                      std::vector<Diagnostics>& notes, PpChart& chart);

}  // namespace stageline
