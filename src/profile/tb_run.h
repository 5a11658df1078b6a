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

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/by_enum.h"
#include "base/result.h"
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

}  // namespace stageline
