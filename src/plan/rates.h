// Times of a layout without a run: FLOPs ÷ what the device reaches, and bytes ÷ what its links reach. Every time made
// here is an estimate, ± 20 % absolute and ± 5 % between plans of equal tensor parallelism and micro-batch.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/pipeline.h"

namespace stageline::plan {

struct Hardware {
  std::string name = "H100-SXM";
  double bf16_flops = 989e12, fp8_flops = 1979e12, hbm_bytes_s = 3.35e12, memory = 79.6 * (1 << 30);
  double intra_bytes_s = 450e9, inter_bytes_s = 50e9;                           // of one device and direction
  double gemm = 0.65, grouped = 0.45, attention = 0.55, attention_back = 0.45;  // share of the peak that is reached
  double link_share = 0.75, intra_ns = 5'000, inter_ns = 12'000;
};
// The devices that --hardware knows by name.
const std::vector<Hardware>& known_hardware();
// Reads a device from JSON: {"base": NAME, "bf16_tflops": …, "hbm_gb": …}. Errors: kBadInput.
Result<Hardware> read_hardware(std::string_view json, const std::string& path);

struct RateOptions {
  Hardware hardware;
  int32_t per_node = 8;
  double mfu = 0;  // replaces what every operation reaches; 0: does not
  bool fp8 = false;
  double scale = 1, ends_scale = 1;  // of the cells, and of what comes before and after them, by measured steps
  MemoryOptions memory;
};

// A step that was measured somewhere, of 1F1B with an even split.
struct MeasuredStep {
  Layout layout;
  int32_t micro_batches = 1;
  double step_ns = 0;
};
// The scales with which the estimates become the measured steps: those of the cells from the growth with the number of
// micro-batches where two of one layout differ in it. Errors: those of make_schedule().
Status calibrate(const Model& model, const std::vector<MeasuredStep>& steps, RateOptions& options);

// Calls `visit` for each time, with its name: "layer.F", "layer.B", "head.F", "head.B", "embedding" or "latency".
void for_each_time(Times& times, const std::function<void(const char* name, int64_t& ns)>& visit);

// The times of one micro-batch on every kind of layer, embedding and head.
Times estimated_times(const Model& model, const Layout& layout, const RateOptions& options);

// What comes before and after the replayed order: exchange of parameters and gradients, and the optimizer.
struct StepEnds {
  std::vector<double> gather_ns, reduce_ns, optimizer_ns;  // for each rank
  double scale = 1;
};
StepEnds step_ends(const PlanProblem& problem, const Plan& plan, const Layout& layout, const RateOptions& options);
// The whole step: what of the exchanges outlasts the cells beside which they run is added to the replayed span.
int64_t step_ns(const PlanProblem& problem, const Plan& plan, const std::vector<std::vector<ReplayedCell>>& cells,
                const StepEnds& ends);

}  // namespace stageline::plan
