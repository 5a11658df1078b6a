// Stacks with what was spent in them, for flame graphs: the collapsed form that torch's export_stacks() writes
// ("outermost;…;innermost 27"), and speedscope's JSON. Format: docs/exporters/stacks.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/trace.h"

namespace stageline {

enum class StackMetric : uint8_t {
  kHostTime,      // µs of a call without the calls below it
  kDeviceTime,    // µs of device work
  kHostMemory,    // bytes allocated less freed by the call itself, where above 0
  kDeviceMemory,  // the same of devices
  kSamples,       // calls of operators
};
// By torch's names: "self_cpu_time_total", "self_cuda_time_total" (also xpu, privateuse1, device), "samples", …
// Errors: kUsage with the list.
Result<StackMetric> stack_metric(std::string_view name);

enum class StackLeaf : uint8_t {
  kNone,      // Python frames alone
  kOperator,  // and the operators within
  kKernel,    // and the kernel, or the runtime call
};

struct StackExportOptions {
  StackMetric metric = StackMetric::kHostTime;
  bool as_torch = false;   // what torch writes: recorded stacks, its rounding, and work counted with its operator too
  bool aggregate = false;  // equal stacks are one line
  bool speedscope = false;
  bool nanoseconds = false;  // collapsed times in ns; otherwise whole µs
  StackLeaf leaf = StackLeaf::kNone;
};

struct StackExportCounts {
  int64_t lines = 0;          // as written
  int64_t below_unit = 0;     // stacks of less than 1 µs, which the collapsed form in µs has no line for
  int64_t below_unit_ns = 0;  // their time; with `aggregate` 0: the next line has it, so that lines add up
  int64_t without_stack = 0;  // calls with something spent in them that no frame is around: not written
};

// Writes the ranks `parts` at `path` (gzip when it ends in ".gz"): several of them under a first frame "rank 3"; in
// speedscope as profiles. No file is left where nothing is in it, unless as_torch. Rebuilt stacks deeper than 512
// frames are cut outside.
Result<StackExportCounts> export_stacks(const Trace& trace, const std::vector<size_t>& parts,
                                        const StackExportOptions& options, const std::string& path);

}  // namespace stageline
