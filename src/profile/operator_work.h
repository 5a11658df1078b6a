// The operators of a rank whose work follows from their shapes, with the device work that they launched.
//
//   aten::linear
//     aten::addmm            ← counted: the outermost operator with a formula that fits
//       aten::mm             ← inside of it, so not counted again
//       cudaLaunchKernel ──▶ gemm kernel, of the call aten::addmm
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/device_peaks.h"
#include "profile/function_events.h"
#include "profile/op_flops.h"

namespace stageline {

struct OperatorCall {
  uint32_t slice = 0;
  StringId name = 0;
  const InputFact* inputs = nullptr;
  OpWork work;
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

// It covers the slices that pass the trace's filter. O(n).
OperatorWork operator_work(const Trace& trace, const Part& part, const FunctionNames& names);

}  // namespace stageline
