// Computation, communication and their overlap in every step of a rank, and how much of the communication is waiting.
// Definitions: docs/analyses/tb-distributed.md.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "profile/tb_run.h"

namespace stageline {

// Every collective and message of every rank, and how much of it was waiting. The same operation is found on all ranks
// and compared.
//
//   rank 0  ├── synchronising ──┤─ data transfer ─┤
//   rank 1            ├── sync. ─┤─ data transfer ─┤
//   rank 2                       ├─ data transfer ─┤    the shortest is all transfer
//
// Clocks of different ranks are not compared. Definitions: docs/analyses/tb-distributed.md.
struct TbCollective {  // one kernel, or one call of a library that works on the host
  // These fields are equal on all ranks of one collective. They are the collective's own numbers or, without these, its
  // place among the calls of its kind in the step.
  StringId comms_id = 0, group = 0, group_ranks = 0, name = 0;
  int64_t number = -1;         // "Seq"
  int64_t from = -1, to = -1;  // ranks, for a message
  int32_t step = INT32_MIN;    // only for calls without numbers
  int64_t size = -1;           // only for calls without numbers: the bytes, for kinds where all ranks have the same
  uint32_t position = 0;       // position by start among the calls that agree in all fields above

  bool message = false;  // a send, a receive or a batch of them: it is between two ranks and not a collective

  StringId label = 0;  // the name in tables: of the collective, else of the annotation, else of the kernel
  int64_t start_ns = 0, dur_ns = 0;
  int64_t bytes = -1;      // those of the larger side; −1: unknown
  int64_t group_size = 0;  // 0: unknown
  // A message without a number, so no call of another rank can be found as its other end.
  bool one_end = false;
  int64_t transfer_ns = -1;  // the shortest among its ranks; −1: not matched with other ranks
  size_t last = 0;           // index of the rank that came last, where transfer_ns is known

  auto kind() const { return std::tie(comms_id, group, group_ranks, name, number, from, to, step, size); }
  bool by_order() const { return comms_id == 0 && number < 0; }
};

// Returns the calls sorted by kind, then by start.
std::vector<TbCollective> tb_collectives(const TbRun& run, const TbRank& rank);

struct TbJoin {
  int64_t joined = 0;  // number of calls with a counterpart
  int64_t alone = 0;   // number of calls without a counterpart
  // Number of calls that would be matched by order but whose number differs between ranks; these are not matched.
  int64_t unequal = 0;
};
// Matches calls of different ranks and fills transfer_ns; `one_clock`: their starts say who came last. O(n log ranks)
// in all collectives.
TbJoin join_collectives(std::vector<std::vector<TbCollective>>& ranks, bool one_clock);

// Returns the bytes of the tensors that an operator was given: "[[2, 3], []]" and "[\"float\", \"Scalar\"]" give 24.
// Types are written as PyTorch prints C++ types. Unknown types count 0, and so do lists of tensors.
int64_t input_bytes(std::string_view dims, std::string_view types);

struct TbOverlap {  // parts of one step; they sum to its length
  int64_t computation_ns = 0, overlap_ns = 0, communication_ns = 0, other_ns = 0;
};
struct TbWait {  // parts of one step's communication; they sum to it
  int64_t transfer_ns = 0, synchronizing_ns = 0, unknown_ns = 0;
  int64_t message_transfer_ns = 0, message_wait_ns = 0;  // how much of the first two belongs to sends and receives
  int64_t exposed_wait_ns = 0;                           // waiting in collectives while nothing computes
};

// The cost of waiting in collectives in one step, while nothing computes.
struct TbStepWait {
  int64_t number = 0;     // of the step
  int64_t own_ns = 0;     // what the rank waits
  int64_t others_ns = 0;  // what all others wait in collectives to which this rank comes last
};

// The means over the steps of a rank, to the nanosecond.
struct TbMeanWork {
  int64_t step_ns = 0;
  TbOverlap overlap;
  TbWait wait;
};

struct TbRankWork {
  int32_t rank = 0;
  std::vector<TbStep> steps;
  std::vector<TbOverlap> overlaps;         // for each step
  std::vector<TbWait> waits;               // for each step
  std::vector<TbStepWait> step_waits;      // for each step
  int64_t collectives = 0, came_last = 0;  // those that were found on other ranks too
  std::vector<Interval> exposed;           // communication while nothing computes
  bool communicates = false;
  std::vector<TbCollective> calls;
  TbMeanWork mean() const;  // 0 without steps
};

// Without waits, which need all ranks. O(n log n) in the rows.
TbRankWork tb_work(const TbRun& run, const TbRank& rank);

// Matches the calls of all ranks and fills their `waits`.
TbJoin join_work(std::vector<TbRankWork>& ranks, bool one_clock);

}  // namespace stageline
