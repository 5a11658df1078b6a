// Communication operations of every rank, and the same operation found on the other ranks.
//
//   rank 0  ├── waits ───┼─ transfer ─┤
//   rank 1        ├ waits┼─ transfer ─┤
//   rank 2               ├─ transfer ─┤   came last: its operation has the transfer alone
//
// All ranks leave a synchronising collective together, so what an operation takes longer than the shortest of its ranks
// was waiting. No clock is compared. Definitions: docs/analyses/slow-rank.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "profile/torch_view.h"

namespace stageline {

struct CommunicationOp {
  // What is equal on all ranks of one collective: its own numbers, else its place among its like in the step.
  StringId comms_id = 0, group = 0, group_ranks = 0, kind = 0;  // kind: "allReduce"; without a fact the kernel's name
  int64_t number = -1;
  int32_t key_step = -1;
  uint32_t position = 0;

  StringId name = 0;         // of the slice: "hcom_allReduce__377_4_1"
  StringId description = 0;  // of the group: "tp"
  uint32_t rank_index = 0;   // into the run's parts
  uint32_t slice = 0;
  int32_t step = -1;
  bool messages = false;             // send, receive or a batch of them: between two ranks, nobody waits for all
  bool leaves_early = false;         // a rank may leave before others have come: broadcast, reduce, gather, scatter
  int64_t start_ns = 0, dur_ns = 0;  // as in TorchRow
  int64_t bytes = -1;
  int64_t group_size = 0;    // 0: not said
  int64_t transfer_ns = -1;  // the shortest of its ranks; −1: not found on another rank, or not synchronising
  bool all_seen = false;     // found on as many ranks as its group has; else transfer_ns is at most that much

  int64_t end_ns() const { return start_ns + dur_ns; }
  int64_t wait_ns() const { return transfer_ns < 0 ? 0 : dur_ns - transfer_ns; }
  auto key() const { return std::tie(comms_id, group, group_ranks, kind, number, key_step, position); }
  auto like() const { return std::tie(comms_id, group, group_ranks, kind, number, key_step); }
};

// What names of operations say, looked up by name id.
struct OpNames {
  explicit OpNames(const StringPool& names);
  std::vector<bool> messages, receives, leaves_early;
};

// In the order of their starts. O(n log n).
std::vector<CommunicationOp> communication_ops(const TorchRank& rank, uint32_t rank_index, const OpNames& names);
// The same for all ranks at once, in parallel.
std::vector<std::vector<CommunicationOp>> all_communication_ops(const TorchRun& run);

// Finds every collective on its ranks and fills transfer_ns. The result holds, one after another, the members of each
// collective that was found on at least two ranks, by rank; `begin` are their borders (n + 1 entries).
struct Matched {
  std::vector<CommunicationOp*> members;
  std::vector<size_t> begin;
  int64_t alone = 0;        // operations without a counterpart
  int64_t partly_seen = 0;  // collectives of groups whose other members are not in the trace
  int64_t not_matched = 0;  // messages, and collectives that ranks may leave early
  size_t count() const { return begin.size() - 1; }
};
// O(n log n) in all operations.
Matched match_collectives(std::vector<std::vector<CommunicationOp>>& ranks);

// Says in the notes what could not be matched.
void note_unmatched(const Matched& matched, size_t rank_count, class Diagnostics& notes);

// Ascend: says where a profile of Level_none cannot hold what is asked for. Not in reports, which say it once.
void note_level_none(const struct AnalysisInput& input, class Diagnostics& notes);

}  // namespace stageline
