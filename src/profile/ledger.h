// The ledger: every collective and message of a profile, found on all ranks that took part, and its time without the
// waiting for late members.
//
//   rank 0  ├──── wait ────┼─ transfer ─┤
//   rank 1        ├─ wait ─┼─ transfer ─┤     the last one came here ┘ so the transfer is the last part of each kernel
//   rank 2                 ├─ transfer ─┤
//
// Calls are matched by their own numbers; by the order of starts only where all ranks have equally many. Dumps of
// flight recorders have calls, and the length of a kernel only where it was timed. Definitions:
// docs/analyses/communication.md.
#pragma once

#include "model/collective_kind.h"
#include "model/intervals.h"
#include "profile/torch_view.h"

namespace stageline {

struct LedgerGroup {
  std::string name;              // its members as "0-3,8"; the profiler's name and size where they are unknown
  std::vector<int32_t> members;  // global ranks in the group's order; empty: unknown
  StringId own_name = 0, description = 0;
  int64_t size = 0;
};

// One message's other side within a kernel: several are batched into one.
struct LedgerPeer {
  int32_t rank = 0;                // −1: unknown
  int64_t sent = 0, received = 0;  // −1: unknown
  int32_t sender = -1;             // where each call is one message in a known direction
  int64_t bytes() const { return sent < 0 || received < 0 ? -1 : std::max(sent, received); }
};

// A kernel of communication on one rank.
struct LedgerCall {
  CollectiveKind kind = CollectiveKind::kUnknown;
  uint32_t rank_index = 0;  // into TorchRun::parts
  uint32_t slice = 0;       // of that part
  int32_t step = -1;
  int32_t group = -1;  // into Ledger::groups; −1: the trace has no call for the kernel
  StringId kernel = 0, comms_id = 0;
  int64_t number = -1;                          // the sequence number, where it distinguishes calls
  int64_t start_ns = 0, end_ns = 0;             // end −1: not timed on the device; the start is the host's
  int64_t bytes = -1;                           // of the whole message; −1: unknown
  int32_t channels = -1;                        // blocks of the kernel
  std::vector<LedgerPeer> peers;                // of messages
  std::vector<int64_t> sent_to, received_from;  // of all-to-all-v, for each member; empty: unknown
  int64_t rows_sent = -1, rows_received = -1;   // the same in the units of the splits, to all members; −1: unknown
};

enum class TransferBasis : uint8_t { kAtLeast, kAtMost, kClock, kDurations };

// The part that one rank has in an instance.
struct LedgerPart {
  const LedgerCall* call = nullptr;
  int64_t wait_ns = 0, transfer_ns = 0;                  // they add up to the kernel
  int64_t exposed_wait_ns = 0, exposed_transfer_ns = 0;  // what no computation of the rank covers
};

struct LedgerInstance {
  CollectiveKind kind = CollectiveKind::kUnknown;
  int32_t group = -1;
  int32_t low = -1, high = -1;  // the two ranks of a message
  size_t begin = 0, end = 0;    // its rows in Ledger::parts, by rank
  bool complete = false;        // all members are there; nothing below is filled otherwise
  int64_t bytes = -1;
  double bus_bytes = 0;
  int64_t took_ns = 0;  // −1: a member was not timed, so there are no times and no basis
  TransferBasis basis = TransferBasis::kClock;
};

struct Ledger {
  std::vector<LedgerGroup> groups;
  std::vector<std::vector<LedgerCall>> calls;  // for each part of the run, by start
  std::vector<LedgerInstance> instances;
  std::vector<LedgerPart> parts;
  struct Unmatched {
    const LedgerCall* call = nullptr;
    int32_t low = -1, high = -1;  // of a message whose other side is known
  };
  std::vector<Unmatched> unmatched;
  bool has_steps = false;
  bool in_steps(const LedgerInstance& x) const { return !has_steps || parts[x.begin].call->step >= 0; }
};

// The calls and the groups of one rank. O(n log n) in the rows.
struct RankCalls {
  std::vector<LedgerCall> calls;
  std::vector<LedgerGroup> groups;
  CoveredTime computation{{}};
};
RankCalls rank_calls(const TorchRank& rank, const Trace& trace, uint32_t rank_index);
// Returns the same of part `p` of the run's trace, from its dump of a flight recorder. O(n log n) in the calls.
RankCalls flight_rank_calls(const TorchRun& run, size_t p, uint32_t rank_index);

// O(n log n) in all calls; ranks are laid out in parallel.
Ledger make_ledger(const TorchRun& run);

// "0-3,8" of ascending numbers.
std::string rank_ranges(const std::vector<int32_t>& ranks);

}  // namespace stageline
