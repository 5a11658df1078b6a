// Writes stacks with the amount spent in them, for flame graphs: in the collapsed form that torch's export_stacks()
// writes ("outermost;…;innermost 27"), and as speedscope's JSON. Format: docs/exporters/stacks.md.
#pragma once

#include "model/trace.h"

namespace stageline {

enum class StackMetric : uint8_t {
  kHostTime,      // µs of a call without the calls inside it
  kDeviceTime,    // µs of device work
  kHostMemory,    // bytes that the call itself allocated less those it freed, where that is above 0
  kDeviceMemory,  // the same for memory of devices
  kSamples,       // number of operator calls
};
// Finds a metric by torch's name: "self_cpu_time_total", "self_cuda_time_total" (also xpu, privateuse1, device),
// "samples", … Errors: kUsage with the list.
Result<StackMetric> stack_metric(std::string_view name);

enum class StackLeaf : uint8_t {
  kNone,      // only Python frames
  kOperator,  // also the operators within them
  kKernel,    // also the kernel or the runtime call
};

struct StackExportOptions {
  StackMetric metric = StackMetric::kHostTime;
  // Writes what torch writes: recorded stacks, torch's rounding, and work counted with its operator too.
  bool as_torch = false;
  bool aggregate = false;  // equal stacks are written as one line
  bool speedscope = false;
  bool nanoseconds = false;  // collapsed times are in ns instead of whole µs
  StackLeaf leaf = StackLeaf::kNone;
};

struct StackExportCounts {
  int64_t lines = 0;       // lines written
  int64_t below_unit = 0;  // stacks of less than 1 µs, for which the collapsed form in µs has no line
  // The time of those stacks; 0 with `aggregate`, where the next line includes it, so that the lines add up.
  int64_t below_unit_ns = 0;
  int64_t without_stack = 0;  // calls that have some amount but no frame around them; they are not written
};

// Writes the ranks `parts` at `path` (gzip when it ends in ".gz"). A first frame "rank 3" distinguishes several ranks;
// speedscope has one profile per rank. When there is nothing to write, no file is left, unless as_torch is set. Rebuilt
// stacks deeper than 512 frames lose their outermost frames.
Result<StackExportCounts> export_stacks(const Trace& trace, const std::vector<size_t>& parts,
                                        const StackExportOptions& options, const std::string& path);

}  // namespace stageline
