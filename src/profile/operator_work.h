// The operators of a rank whose work follows from their shapes, with the device work that they launched.
//
//   aten::linear
//     aten::addmm            ← counted: the outermost operator with a formula that fits
//       aten::mm             ← inside of it, so not counted again
//       cudaLaunchKernel ──▶ gemm kernel, of the call aten::addmm
//
// Where the program recorded the FLOPs of an operator (torch_npu's with_flops: a range of the domain "mfu_flops" around
// it, "12884901888-linear"), these count, for all kernels that were launched within, and no formula.
#pragma once

#include "profile/device_peaks.h"
#include "profile/function_events.h"
#include "profile/op_flops.h"

namespace stageline {

struct OperatorCall {
  uint32_t slice = 0;
  StringId name = 0;
  const InputFact* inputs = nullptr;  // never null; of recorded FLOPs those of the longest kernel
  OpWork work;                        // recorded FLOPs have 0 bytes: nothing says how many were needed
  std::optional<Precision> precision;
  int64_t start_ns = 0, device_ns = 0;  // device_ns: sum of the kernels, 0 for work of the host
};

struct DeviceWork {
  int64_t start_ns = 0, end_ns = 0;
  int32_t call = -1;  // into OperatorWork::calls; −1: of no operator with known work
  KernelClass kind = KernelClass::kNone;
  bool on_tensor_cores = false;  // by its name
};

struct OperatorWork {
  std::string device;
  std::optional<DevicePeaks> published;
  std::vector<OperatorCall> calls;
  std::vector<DeviceWork> work;  // all of the rank's
  int64_t without_work = 0;  // operators whose formula does not fit; nothing around or inside them is counted instead
  bool has_shapes = false;
};

struct RecordedFlops {
  int64_t flops = 0;
  std::string_view name;
};
// Returns the FLOPs that a range of the domain "mfu_flops" states; nullopt for other ranges. `name`: "linear".
std::optional<RecordedFlops> recorded_flops(const Trace& trace, const RangeFact& range);

// A kernel of an operator that starts within such a range, as msprof-analyze counts it: each has all FLOPs of the
// range, against the peak of the type that the first kernel of the range reads (0: unknown).
struct RecordedKernel {
  uint32_t slice = 0, op = 0;
  RecordedFlops of;
  double peak_tflops = 0;
  double tflops(const Part& part) const {
    return static_cast<double>(of.flops) / static_cast<double>(part.slices.dur_ns[slice]) / 1e3;
  }
};
// In the order of the ranges, and of starts within them. O(n log n).
std::vector<RecordedKernel> recorded_kernels(const Trace& trace, const Part& part);

// Returns the peaks of the cube cores that the profiler of Ascend wrote down (info.json: cores · clock · 8192
// operations a cycle on 16 bits, 16384 on 8), without those of memory. nullopt where a rank has no such file.
std::optional<DevicePeaks> recorded_peaks(const Part& part);
// The device's entry in info.json: {"id": 0, "ai_core_num": 24, "aic_frequency": "1800", …}; "" without that file.
std::string_view recorded_device(const Part& part);
inline constexpr std::string_view kRecordedPeaks = "info.json";  // DevicePeaks::source

// It covers the slices that pass the trace's filter. O(n).
OperatorWork operator_work(const Trace& trace, const Part& part, const FunctionNames& names);

}  // namespace stageline
