// FLOPs of a profile's operators as a share of what its devices can do, for each step. Definitions:
// docs/analyses/mfu.md.
#pragma once

#include "facts/run.h"
#include "profile/device_peaks.h"

namespace stageline {

using Tflops = ByEnum<Precision, double, kPrecisionCount>;  // 0: unknown

// Work of a device within a step's time. Each instant counts once, for the first that covers it.
enum class StepUseKind : uint8_t { kMatrix, kComputing, kCommunication, kRest };
inline constexpr size_t kStepUseKinds = 4;

struct StepUse {
  int64_t number = -1;                  // −1: the rank has no steps, and its whole device work is one
  int64_t start_ns = 0, step_ns = 0;    // of the host's row
  int64_t matrix_ns = 0, known_ns = 0;  // kernels of matrix operators; of those whose FLOPs follow exactly
  double min_flops = 0, max_flops = 0;  // they differ where lengths of packed sequences are not known
  double peak_ns = 0;                   // time of min_flops at the peak rates of their precisions
  ByEnum<StepUseKind, int64_t, kStepUseKinds> ns = {};
  double peak_within_ns = 0;  // of the part of the kernels that ran within the step's time
};

struct OperatorUse {
  std::string module, name;  // the innermost nn.Module around the operator; "" where none is recorded
  std::optional<Precision> precision;
  int64_t calls = 0, device_ns = 0;
  double min_flops = 0, max_flops = 0;
};

struct RankUse {
  int32_t rank = 0, stage = kUnknown;
  std::string device, source;  // who says the peaks: "given", "" where they are unknown, "given in part"
  Tflops peaks = {};
  double highest_tflops = 0;  // of the precisions that its matrix operators have
  bool has_shapes = false;
  std::string largest;  // the matrix operator with the most FLOPs, with its shapes
  double largest_flops = 0;
  std::vector<StepUse> steps;
  std::vector<OperatorUse> operators;
};

struct Utilisation {
  std::vector<RankUse> ranks;  // those that are in the trace
  int64_t devices = 0;         // of the whole job
};

// `given` replaces published peaks where it is above 0. Empty where the trace has no profiler slices. O(n log n).
Utilisation make_utilisation(const Trace& trace, const Tflops& given);
// With published peaks alone, made when first asked.
const Utilisation& utilisation_of(const Run& run);

// Known FLOPs at peak rates as a share of the steps' time, over all ranks and steps; NaN where no peak is known.
double hfu_of(const Utilisation& use);

}  // namespace stageline
