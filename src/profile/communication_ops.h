// Communication operations of every rank, and for each the same operation on the other ranks.
//
//   rank 0  ├── waits ───┼─ transfer ─┤
//   rank 1        ├ waits┼─ transfer ─┤
//   rank 2               ├─ transfer ─┤   came last: its operation has the transfer alone
//
// All ranks leave a synchronising collective together. So a rank waited for the time by which its operation is longer
// than the shortest among the ranks. Clocks of ranks are not compared. Definitions: docs/analyses/slow-rank.md.
#pragma once

#include "profile/torch_view.h"

namespace stageline {

struct CommunicationOp {
  // These fields are equal on all ranks of one collective. Those that agree in all of them, as operations without
  // numbers do in a step, are matched by their order.
  StringId comms_id = 0, group = 0, group_ranks = 0, kind = 0;  // kind: "allReduce"; without a fact the kernel's name
  int64_t number = -1;
  int32_t key_step = -1;

  StringId name = 0;         // name of the slice: "hcom_allReduce__377_4_1"
  StringId description = 0;  // description of the group: "tp"
  uint32_t rank_index = 0;   // index into the run's parts
  uint32_t slice = 0;
  int32_t step = -1;
  // A send, a receive or a batch of them, but for one that an all-to-all is made of: there is no waiting for all.
  bool messages = false;
  bool receives = false;      // of a message: its receiver recorded it
  bool leaves_early = false;  // a rank may leave before others have come, as in broadcast, reduce, gather and scatter
  int64_t start_ns = 0, dur_ns = 0;      // as in TorchRow
  int32_t src_rank = -1, dst_rank = -1;  // of a message, where both ends are known
  int64_t bytes = -1;
  int64_t group_size = 0;    // 0: unknown
  int64_t transfer_ns = -1;  // the shortest among its ranks; −1: not found on another rank, or not synchronising
  // It was found on all ranks of its group; otherwise the true transfer takes at most transfer_ns.
  bool all_seen = false;

  int64_t end_ns() const { return start_ns + dur_ns; }
  int64_t wait_ns() const { return transfer_ns < 0 ? 0 : dur_ns - transfer_ns; }
  auto key() const { return std::tie(comms_id, group, group_ranks, kind, number, key_step); }
};

// The facts that the names of operations contain, indexed by name id.
struct OpNames {
  explicit OpNames(const StringPool& names);
  std::vector<bool> messages, receives, leaves_early, all_to_all;
};

// Returns the operations in the order of their starts. O(n log n).
std::vector<CommunicationOp> communication_ops(const TorchRank& rank, uint32_t rank_index, const OpNames& names);
// Returns the operations of all ranks, computed in parallel.
std::vector<std::vector<CommunicationOp>> all_communication_ops(const TorchRun& run);

// The collectives that were found on at least two ranks. `members` holds one collective after another, with the
// operations of each sorted by rank; `begin` are the borders (n + 1 entries).
struct Matched {
  std::vector<CommunicationOp*> members;
  std::vector<size_t> begin;
  int64_t alone = 0;        // number of operations without a counterpart
  int64_t partly_seen = 0;  // number of collectives of groups whose other members are not in the trace
  int64_t not_matched = 0;  // number of messages, and of collectives that ranks may leave early
  size_t count() const { return begin.size() - 1; }
};
// Finds every collective on its ranks and fills transfer_ns. O(n log n) in all operations.
Matched match_collectives(std::vector<std::vector<CommunicationOp>>& ranks);
// Finds the messages that both ends recorded: the k-th from one rank to another in a group on either side, where both
// sides have as many. The send of each comes before its receive. O(n log n) in all operations.
Matched match_messages(std::vector<std::vector<CommunicationOp>>& ranks);

// Divides the time of a communication operation into transfer, waiting and the rest. Definitions:
// docs/analyses/communication-time-sum.md.

enum class Basis : uint8_t { kNone, kMatched, kTasks };
constexpr const char* basis_text(Basis basis) {
  return basis == Basis::kTasks ? "tasks" : basis == Basis::kMatched ? "other ranks" : "";
}

struct OpTime {
  CommunicationOp op;
  Basis basis = Basis::kNone;
  int64_t transit_ns = 0, wait_ns = 0, sync_ns = 0;
  int64_t idle_ns() const { return op.dur_ns - transit_ns - wait_ns; }
};

// Returns the times of one rank's operations, after match_collectives. They are computed from the operations' tasks;
// without tasks, from the other ranks, when all ranks of the group are there; otherwise they stay unknown. `msprof`: as
// in the profiler's own sums. O(n log n) in tasks.
std::vector<OpTime> op_times(const TorchRun& run, const std::vector<CommunicationOp>& ops, const Part& part,
                             bool msprof);

// The waits of one rank in collectives, and those that it causes.
//
// Clocks of ranks are not compared: the rank with the shortest operation came last (communication_ops.h).
struct RankWaits {
  int64_t collectives = 0, last = 0, wait_ns = 0, caused_ns = 0;
  int64_t transfer_ns = 0;  // what the fastest rank of each of its collectives took
};
struct KindWaits {
  int64_t count = 0, ranks = 0, wait_ns = 0, longest_ns = 0;
  std::vector<double> end_spread_ns;
  std::map<int32_t, int64_t> caused_ns;  // for each rank
};
struct CollectiveSums {
  std::vector<RankWaits> ranks;                                         // for each part of the run
  std::map<std::tuple<StringId, StringId, StringId>, KindWaits> kinds;  // group, its ranks, name
};

// Finds each collective on its ranks and sums who waited for whom. O(n log n) in all operations.
CollectiveSums collective_sums(const TorchRun& run, const Matched& matched);

// Removes a collective that was open when the capture began from the device work of all ranks. It shows when the
// profilers were started, and no waiting, because the earlier work of the last rank to record is not known. Such a
// collective is the first work of each device, and the rank with the shortest kernel, which came last, recorded nothing
// before it. Profiler steps begin at a known time, so runs with steps keep it. O(slices).
void leave_out_open_collective(Trace& trace);

}  // namespace stageline
