// The operation orders of every rank in every step, in a form that can be compared with the orders of a schedule.
#pragma once

#include "model/trace.h"

namespace stageline {

// Holds one F, B, I or W. A micro-batch or chunk that is not known is kUnknown and compares equal to any.
struct WorkToken {
  int32_t micro_batch = kUnknown;
  int16_t chunk = 0;
  CellKind kind = CellKind::kForward;
  bool fused = false;  // runs as one with its neighbour; F comes first

  bool operator==(const WorkToken&) const = default;
};

// The rule that turns the trace's labels of micro-batches into 0, 1, 2, …
enum class LabelRule : uint8_t {
  kDense,     // as they are when they fit; otherwise by value, in one numbering for all chunks
  kPerChunk,  // by value in each chunk, since MindSpeed's DualPipeV numbers its second chunk from m on
  kByOrder,   // for labels that say nothing: by the order in which ranks run their forwards (median place over ranks)
};

// The work of one rank in one step: the tokens [begin, end) of RankLists.
struct RankList {
  int32_t step = 0, dp = 0, part = 0, stage = 0;
  int32_t micro_batches = 0;  // micro-batches of this step
  size_t begin = 0, end = 0;
};

// All lists with their cells, at 12 B a token.
struct RankLists {
  LabelRule rule = LabelRule::kDense;
  int32_t stages = 0, chunks = 0;
  int32_t micro_batches = 0;           // the most common number of micro-batches per step
  bool chunks_share_no_label = false;  // there are two chunks, and no micro-batch runs on both
  std::vector<RankList> lists;         // ordered by step, replica, part
  std::vector<WorkToken> tokens;
  std::vector<uint32_t> cell;  // for each token its row of Trace::cells; an F&B cell has two tokens

  // Returns the end of the lists that belong to the step and replica of list `first`.
  size_t group_end(size_t first) const {
    size_t last = first;
    while (last < lists.size() && lists[last].step == lists[first].step && lists[last].dp == lists[first].dp) ++last;
    return last;
  }
};

// A list that several ranks and steps of one stage have in common.
struct WorkList {
  int32_t stage = 0;
  int32_t micro_batches = 0;  // micro-batches of the step it belongs to
  std::vector<WorkToken> tokens;
  int64_t count = 0;                   // how many (step, replica, rank) have it
  int32_t step = 0, dp = 0, part = 0;  // the first of them
};

struct WorkLists {
  LabelRule rule = LabelRule::kDense;
  int32_t stages = 0, chunks = 0;
  int32_t micro_batches = 0;           // the most common number of micro-batches per step
  bool chunks_share_no_label = false;  // there are two chunks, and no micro-batch runs on both
  int64_t list_count = 0;
  std::vector<WorkList> lists;  // in order of first appearance
};

// Expects sorted cells. Steps with unknown numbers are skipped; a part with unknown stage gets the stage that
// infer_layout() finds. Two cells of opposite direction that overlap by more than half of the shorter one are one fused
// pair. The backward of a loss that is marked apart does not count as a cell (loss_backwards()). Where chunk numbers
// are pieces of one job, the first piece stands for the job. O(cells) for labels of the usual kind, O(cells log cells)
// for any others.
RankLists rank_lists(const Trace& trace, LabelRule rule);

// Returns the same with equal lists of one stage kept once. O(tokens).
WorkLists work_lists(const RankLists& lists);
WorkLists work_lists(const Trace& trace, LabelRule rule);

// Returns the tensor-parallel index of each part that has lists: its place among the parts of its (replica, stage);
// kUnknown for other parts. O(lists).
std::vector<int32_t> list_positions(const RankLists& lists, size_t parts);

using SameToken = bool (*)(const WorkToken& a, const WorkToken& b);

// Returns true when both are forwards, or both are backwards, of the same work; B counts as I.
bool same_direction(const WorkToken& a, const WorkToken& b);
// Returns true when both have the same kind, and both or neither are fused.
bool same_work(const WorkToken& a, const WorkToken& b);

inline constexpr size_t kExactDistance = 96;
// Returns how many insertions, deletions and replacements turn one list into the other. The number is exact up to
// kExactDistance; above that it is an upper bound of at least kExactDistance + 1, from comparing position by position.
// O(n + d · (n + d)) with d ≤ kExactDistance, usually O(n + d²).
size_t edit_distance(std::span<const WorkToken> a, std::span<const WorkToken> b, SameToken same);

// A place where lists first leave the recognised schedule; lists that leave it in the same way are counted together.
struct Divergence {
  int32_t stage = 0;
  int64_t lists = 0;                   // how many lists (step, replica, rank) leave the schedule here in this way
  int32_t step = 0, dp = 0, part = 0;  // the first such list
  int64_t position = 0;                // counted among the forwards and backwards of the list, from 0
  std::string expected, found;         // "F3", with several chunks "F3.c1"; "" where that list has ended
  bool is_order = false;  // both cells are in the list, in the other order; so the recording has no gap there
  Text sentence;
};

// Compares two lists that hold forwards and backwards only. Fills position, expected, found, is_order and the
// sentences, without rank or step; nullopt when the lists are equal. `label`, where given, returns what the trace calls
// a micro-batch of a chunk. O(length).
using MicroBatchLabel = std::function<int32_t(int32_t micro_batch, int32_t chunk)>;
std::optional<Divergence> first_divergence(std::span<const WorkToken> expected, std::span<const WorkToken> found,
                                           bool with_chunk, const MicroBatchLabel& label = {});

}  // namespace stageline
