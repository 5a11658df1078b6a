// The input that the four tb- analyses share: a rank's time divided into the plugin's categories, and its steps as the
// devices ran them.
//
//   host    ├── ProfilerStep#3 ──┤├── ProfilerStep#4 ──┤
//   device       ├─ work of 3 ───────┤├─ work of 4 ────────┤
//   step    ├────────── 3 ───────────┤├───────── 4 ────────┤   a step ends when its device work does, and the next
//                                                               begins there
//
// Definitions, and what TensorBoard's profiler plugin did differently: docs/analyses/tb-overview.md.
#pragma once

#include "model/intervals.h"
#include "model/table.h"
#include "profile/torch_view.h"

namespace stageline {

// The plugin's categories of time in the order of priority: an instant belongs to the first category that covers it.
enum class TbRole : uint8_t { kKernel, kMemcpy, kMemset, kCommunication, kRuntime, kDataLoader, kCpuExec, kOther };
inline constexpr size_t kTbRoleCount = 8;
inline constexpr size_t kTbCoverCount = 7;   // all but kOther, which is the time that no category covers
std::string_view tb_role_name(TbRole role);  // "CPU Exec"

// Gives the kind of event of a row, by its Category.
enum class TbEvent : uint8_t { kNone, kOperator, kAnnotation, kRuntime, kKernel, kMemcpy, kMemset };
// Returns true for what devices do.
inline bool is_work(TbEvent event) {
  return event == TbEvent::kKernel || event == TbEvent::kMemcpy || event == TbEvent::kMemset;
}

struct TbRun {
  TorchRun torch;
  bool keeps_last_step = false;         // --include-last-profiler-step: keeps incomplete steps at the end
  std::vector<uint8_t> name_facts;      // indexed by name id
  std::vector<int64_t> step_number;     // indexed by name id; −1 for other names than steps
  std::vector<TbEvent> category_event;  // indexed by category id

  enum NameFact : uint8_t {
    kDataLoader = 1,
    kHostCollective = 2,    // "gloo:…", "mpi:…": threads of the host do the work
    kDeviceCollective = 4,  // "nccl:…", "ucc:…": the host only starts the work
    kTensorCore = 8,
    kTensorOperator = 16,
    kSilentKernel = 32,  // the name says nothing of the units that the kernel runs on
    kHostCall = 64,      // "c10d::…", "record_param_comms": operators that communicate or start that
  };
  bool is(StringId name, uint8_t facts) const { return (name_facts[name] & facts) != 0; }
  TbEvent event(const TorchRank& rank, const TorchRow& row) const;
  bool is_kernel(const TorchRank& rank, const TorchRow& row) const { return event(rank, row) == TbEvent::kKernel; }
  bool is_step(const TorchRow& row, TbEvent event) const {
    return step_number[row.name] >= 0 && (event == TbEvent::kOperator || event == TbEvent::kAnnotation);
  }
};

// Returns what a name says, as TbRun::NameFact.
uint8_t tb_name_facts(std::string_view name);

// Errors: those of make_torch_run.
Result<TbRun> make_tb_run(const Trace& trace, bool keeps_last_step);

struct TbStep {
  int64_t number = kNullInteger;  // null when no step was recorded and the whole capture counts as one
  int64_t start_ns = 0, end_ns = 0;

  int64_t length_ns() const { return end_ns - start_ns; }
};

struct TbRank {
  TorchRank rank;
  ByEnum<TbRole, std::vector<Interval>, kTbCoverCount> cover;  // for each role: the union of its intervals
  std::vector<TbStep> steps;       // by start; steps in which a device worked do not overlap
  int64_t dropped_steps = 0;       // number of steps at the end that have little or none of their device work
  bool host_communicates = false;  // the communication is host calls, because there is no communication kernel

  const std::vector<Interval>& covered(TbRole role) const { return cover[role]; }
};
// O(n log n) in the rows of the part.
TbRank tb_rank(const TbRun& run, size_t part);

// For each step: the time of each role. The times sum to the step's length.
using TbCosts = ByEnum<TbRole, int64_t, kTbRoleCount>;
std::vector<TbCosts> tb_costs(const TbRank& rank);

// Computation, communication and their overlap in every step of a rank, and how much of the communication is waiting.
// Definitions: docs/analyses/tb-distributed.md.

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
