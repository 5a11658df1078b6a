// What the four tb- analyses share: a rank's time by the plugin's categories, and its steps as the devices ran them.
//
//   host    ├── ProfilerStep#3 ──┤├── ProfilerStep#4 ──┤
//   device       ├─ work of 3 ───────┤├─ work of 4 ────────┤
//   step    ├────────── 3 ───────────┤├───────── 4 ────────┤   a step ends when its device work does, and the next
//                                                               begins there
//
// Two modes: ours, and with --compat tb that of TensorBoard's profiler plugin (torch_tb_profiler 0.4.3). Definitions
// and differences: docs/analyses/tb-overview.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyses/analysis.h"
#include "model/intervals.h"
#include "profile/torch_view.h"

namespace stageline {

// The plugin's categories of time, by priority: an instant belongs to the first that covers it.
enum class TbRole : uint8_t { kKernel, kMemcpy, kMemset, kCommunication, kRuntime, kDataLoader, kCpuExec, kOther };
inline constexpr size_t kTbRoleCount = 8;
inline constexpr size_t kTbCoverCount = 7;   // all but kOther, which is what nothing covers
std::string_view tb_role_name(TbRole role);  // "CPU Exec"

// What a row is to the plugin; ours by Category, the plugin's by the category's text.
enum class TbEvent : uint8_t { kNone, kOperator, kAnnotation, kPython, kRuntime, kKernel, kMemcpy, kMemset };

struct TbRun {
  TorchRun torch;
  bool plugin = false;                  // --compat tb
  bool keeps_last_step = false;         // --include-last-profiler-step: incomplete steps at the end stay
  std::vector<uint8_t> name_facts;      // by name id
  std::vector<int64_t> step_number;     // by name id; −1 of other names
  std::vector<TbEvent> category_event;  // by category id

  enum NameFact : uint8_t {
    kDataLoader = 1,
    kNccl = 2,               // one of the plugin's five nccl: names
    kGloo = 4,               // one of its five gloo: names
    kHostCollective = 8,     // "gloo:…", "mpi:…": the host's threads do the work
    kDeviceCollective = 16,  // "nccl:…", "ucc:…": the host only starts it
    kTensorCore = 32,        // in the mode's sense
    kTensorOperator = 64,    // in the mode's sense
  };
  bool is(StringId name, uint8_t facts) const { return (name_facts[name] & facts) != 0; }
  TbEvent event(const TorchRank& rank, const TorchRow& row) const;
  bool is_kernel(const TorchRank& rank, const TorchRow& row) const { return event(rank, row) == TbEvent::kKernel; }
  bool is_step(const TorchRow& row, TbEvent event) const {
    return step_number[row.name] >= 0 && (event == TbEvent::kOperator || event == TbEvent::kAnnotation);
  }
};

// Errors: as make_torch_run.
Result<TbRun> make_tb_run(const AnalysisInput& input);

struct TbStep {
  int64_t number = kNullInteger;  // null: no step was recorded and the whole capture is one
  int64_t start_ns = 0, end_ns = 0;

  int64_t length_ns() const { return end_ns - start_ns; }
};

struct TbRank {
  TorchRank rank;
  std::array<std::vector<Interval>, kTbCoverCount> cover;  // unions, by role
  std::vector<TbStep> steps;                               // by start; without overlap where a device worked in them
  int64_t dropped_steps = 0;                               // at the end, with little or none of their device work
  bool host_communicates = false;  // what is communication are host calls, as no communication kernel is there

  const std::vector<Interval>& covered(TbRole role) const { return cover[static_cast<size_t>(role)]; }
};
// O(n log n) in the rows of the part.
TbRank tb_rank(const TbRun& run, size_t part);

// By step: time of each role, which add up to the step's length (the plugin: mostly).
using TbCosts = std::array<int64_t, kTbRoleCount>;
std::vector<TbCosts> tb_costs(const TbRun& run, const TbRank& rank);

// Both of the plugin's names for a step: its number, "0" for the whole capture.
std::string tb_step_name(const TbStep& step);

}  // namespace stageline
