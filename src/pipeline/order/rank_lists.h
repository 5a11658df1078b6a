// What every rank did in every step, as lists that can be compared with a schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace stageline {

// One F, B, I or W. A micro-batch or chunk that nobody knows is kUnknown and equals any.
struct WorkToken {
  int32_t micro_batch = kUnknown;
  int16_t chunk = 0;
  CellKind kind = CellKind::kForward;
  bool fused = false;  // runs together with its neighbour, F first

  bool operator==(const WorkToken&) const = default;
};

// How the micro-batches' own labels become 0, 1, 2, …
enum class LabelRule : uint8_t {
  kDense,     // as they are when they fit; else by value, one numbering for all chunks
  kPerChunk,  // by value in each chunk: MindSpeed's DualPipeV numbers its second chunk from m on
  kByOrder,   // by the order in which the ranks run their forwards (median place over the ranks): labels that say
              // nothing
};

// The work of one rank in one step: tokens [begin, end) of RankLists.
struct RankList {
  int32_t step = 0, dp = 0, part = 0, stage = 0;
  int32_t micro_batches = 0;  // of the step
  size_t begin = 0, end = 0;
};

// Every list with its cells, 12 B a token.
struct RankLists {
  LabelRule rule = LabelRule::kDense;
  int32_t stages = 0, chunks = 0;
  int32_t micro_batches = 0;           // of most steps
  bool chunks_share_no_label = false;  // two chunks, and no micro-batch runs on both
  std::vector<RankList> lists;         // by step, replica, part
  std::vector<WorkToken> tokens;
  std::vector<uint32_t> cell;  // row of Trace::cells, by token; an F&B cell has two tokens

  // Lists [first, last) of one step and replica, from `first` on.
  size_t group_end(size_t first) const {
    size_t last = first;
    while (last < lists.size() && lists[last].step == lists[first].step && lists[last].dp == lists[first].dp) ++last;
    return last;
  }
};

// Equal lists of one stage are kept once.
struct WorkList {
  int32_t stage = 0;
  int32_t micro_batches = 0;  // of the step it belongs to
  std::vector<WorkToken> tokens;
  int64_t count = 0;                   // how many (step, replica, rank) have it
  int32_t step = 0, dp = 0, part = 0;  // the first of them
};

struct WorkLists {
  LabelRule rule = LabelRule::kDense;
  int32_t stages = 0, chunks = 0;
  int32_t micro_batches = 0;           // of most steps
  bool chunks_share_no_label = false;  // two chunks, and no micro-batch runs on both
  int64_t list_count = 0;
  std::vector<WorkList> lists;  // by first appearance
};

// Expects sorted cells. Steps of unknown number are left out; a part of unknown stage takes the stage that
// infer_layout() finds. Two cells of opposite direction that overlap by more than half of the shorter one are one fused
// pair; a backward's loss that is marked apart is none of its own (loss_backwards()). Where chunk numbers are
// pieces of one job, the first piece stands for the job. O(cells), by labels of the
// usual kind; O(cells log cells) by any.
RankLists rank_lists(const Trace& trace, LabelRule rule);

// The same, without repetitions. O(tokens).
WorkLists work_lists(const RankLists& lists);
WorkLists work_lists(const Trace& trace, LabelRule rule);

}  // namespace stageline
