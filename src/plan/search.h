// The search over layouts: degrees of parallelism, schedules, chunks and micro-batches, each with its best split.
//
// Layouts are taken in the order of a bound that no plan of theirs beats; the search ends when the next bound is above
// the last plan that is wanted. Work is counted in replayed cells, so the answer does not depend on the machine.
#pragma once

#include "plan/split.h"

namespace stageline::plan {

// Splits as frameworks write them: Megatron's layout string and torchtitan's default.

// `--pipeline-model-parallel-layout`, in the shortest form: x*N from three on, and one (…|)*N for repeated stages.
std::string write_megatron_layout(const std::vector<int32_t>& layers, int32_t mtp = 0);

// torchtitan's split of `layers` over `stages` when the first and the last have that many fewer.
std::vector<int32_t> torchtitan_default(int32_t stages, int32_t layers, int32_t first_less, int32_t last_less);

// Times of a layout without a run: FLOPs ÷ what the device reaches, and bytes ÷ what its links reach. Every time made
// here is an estimate, ± 20 % absolute and ± 5 % between plans of equal tensor parallelism and micro-batch.
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

// The work before and after the replayed order: exchange of parameters and gradients, and the optimizer.
struct StepEnds {
  std::vector<double> gather_ns, reduce_ns, optimizer_ns;  // for each rank
  double scale = 1;
};
StepEnds step_ends(const PlanProblem& problem, const Plan& plan, const Layout& layout, const RateOptions& options);
// Returns the whole step: the replayed span, and the part of exchanges that outlasts the cells during which they run.
int64_t step_ns(const PlanProblem& problem, const Plan& plan, const std::vector<std::vector<ReplayedCell>>& cells,
                const StepEnds& ends);

// The abilities of a framework.
struct Framework {
  std::string_view name;
  std::vector<std::string_view> schedules;  // empty: all
  bool per_rank = false;                    // each rank may compute another number of layers again
  bool all_or_none = false;                 // of whole layers, all are computed again or none, and no parts of layers
  bool any_split = true;                    // otherwise only the even one
  bool empty_stages = false;                // a virtual stage may have no layer
  bool dense_act = true;                    // the activation function of a dense MLP can be computed again alone
  bool scratch = true, keeps_sent = false;
  Sharding sharding = Sharding::kDistributed;  // where no other is asked for
};
const std::vector<Framework>& frameworks();
const Framework* find_framework(std::string_view name);

enum class RecomputeWish : uint8_t { kNone, kFull, kSelective, kAuto };

struct Wish {
  Model model;
  const Framework* framework = nullptr;
  RateOptions rates;  // with the memory options
  int32_t gpus = 8, per_node = 8;
  double sequence = 4096;
  int64_t global_batch = 0;  // sequences; 0: with micro_batches
  // Degrees that are allowed; empty: all that fit.
  std::vector<int32_t> tp, cp, ep, etp, pp, dp, micro_batch, chunks, micro_batches;
  std::vector<std::string> schedules;
  RecomputeWish recompute = RecomputeWish::kAuto;
  std::optional<bool> per_rank;
  std::vector<int32_t> split;              // layers of each virtual stage; empty: free
  std::vector<Recompute> split_recompute;  // for each virtual stage of `split`; empty: free
  std::optional<Times> recorded;           // times of a run, for its own degrees
  double recorded_error = 0;               // the error of the model that replays them, as a share
  std::vector<Times> resampled;            // the same times from other draws of the run's steps
  bool calibrated = false;                 // the rates reproduce measured steps
  double recorded_rest_ns = 0;             // of each step, beside the pipeline
  std::vector<int64_t> other_bytes;        // of each stage of the run, what was measured beyond the model
  size_t top = 5;
  int64_t work = 200'000'000;  // of all devices together, in replayed cells: some 50 ns each
  bool pareto = false;
};

struct Candidate {
  Layout layout;
  std::string schedule;
  int32_t chunks = 1, group = 0, micro_batches = 1;
  Plan plan;
  int64_t step_ns = 0, bound_ns = 0;
  double error_ns = 0, bubble = 0, mfu = 0;
  std::vector<RankPeak> peaks;
  int32_t peak_rank = 0;    // the one that needs most
  double peak_bytes = 0;    // its sum
  double needed_bytes = 0;  // with error bar, fragmentation and reserve
  double gap() const { return step_ns > 0 ? 1 - static_cast<double>(bound_ns) / static_cast<double>(step_ns) : 0; }
};

// Why nothing fits: the layout whose fullest rank lacks least, after the most recompute.
struct Shortfall {
  Candidate candidate;
  int32_t rank = 0;
  double excess_bytes = 0;
  struct Fix {
    std::string change;
    double needed = 0;
  };
  std::vector<Fix> fixes;  // single changes with which it fits, the smallest first
};

struct Sensitivity {
  std::string parameter;
  double elasticity = 0;  // relative change of the step ÷ relative change of the parameter
  double flips_at = 0;    // factor of the parameter at which another plan is best; 0: none up to 4 and down to 1/4
};

struct Found {
  std::vector<Candidate> plans;   // the best first; plans whose bars overlap by less memory
  std::vector<Candidate> pareto;  // by peak, each faster than all that need less
  std::vector<Sensitivity> sensitivity;
  std::optional<Shortfall> shortfall;
  int64_t layouts = 0, tried = 0, rejected = 0;  // rejected: by memory alone
  bool complete = true;                          // the work was enough: no layout is left that could be among the plans
  int64_t bound_ns = 0;                          // no plan of the whole space is faster
  // How much faster than the first plan a plan of the whole space may be, as a share.
  double gap() const {
    const auto step = static_cast<double>(plans.front().step_ns);
    return step > 0 ? 1 - static_cast<double>(bound_ns) / step : 0;
  }
};
// Errors: kUsage where no layout has the wanted degrees.
Result<Found> find_plans(const Wish& wish);
// Parts of it. Add the error of the plans' steps, from how times vary over the run's steps; and for each kind of time
// how the best plan's step follows it, and where another plan becomes the best.
void add_errors(const Wish& wish, Found& found);
void add_sensitivity(const Wish& wish, Found& found);

// Returns the problem of one layout. Errors: those of make_schedule().
Result<PlanProblem> problem_of(const Wish& wish, const Layout& layout, const std::string& schedule, int32_t chunks,
                               int32_t micro_batches);
// Returns the whole step of a plan whose order was replayed.
int64_t step_of(const Wish& wish, const PlanProblem& problem, const Layout& layout, const Plan& plan,
                const std::vector<std::vector<ReplayedCell>>& cells, const RateOptions& rates);
// Returns the plan with everything that is printed about it.
Candidate priced(const Wish& wish, const PlanProblem& problem, const Layout& layout, Plan plan, int64_t bound_ns);

// Returns the even split, or the one that is wished for, with everything computed again.
Candidate with_most_recompute(const Wish& wish, const PlanProblem& problem, const Layout& layout);
// Explains by how much `nearest` does not fit, and tries single changes of it.
Shortfall shortfall_of(const Wish& wish, Candidate nearest);

// Returns the lines to type in a framework for a plan; the first ones are comments with its costs. Every split that is
// written reads back as the same split. Errors: kUsage for a framework that is not known or that has no such schedule.
Result<std::string> emit_plan(std::string_view framework, const Wish& wish, const Candidate& plan);

}  // namespace stageline::plan
