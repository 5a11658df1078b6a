#include "facts/utilisation_facts.h"

#include "base/json_members.h"
#include "model/intervals.h"
#include "model/statistics.h"
#include "model/torch_facts.h"
#include "profile/device_time.h"
#include "profile/operator_work.h"

namespace stageline {
namespace {

class RankMeter {
 public:
  RankMeter(const TorchRun& torch, size_t p, const FunctionNames& names, const Tflops& given)
      : trace_(*torch.trace), part_(trace_.parts[p]), done_(operator_work(trace_, part_, names)) {
    out_.rank = torch.ranks[p], out_.stage = part_.stage;
    out_.device = done_.device, out_.has_shapes = done_.has_shapes;
    if (done_.published) out_.peaks = done_.published->tflops, out_.source = done_.published->source;
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i] > 0) out_.peaks[i] = given[i];
    if (const auto count = std::ranges::count_if(given, [](double peak) { return peak > 0; }); count > 0)
      out_.source = count == std::ssize(given) ? "given" : "given in part";
    for (const DeviceStep& step : device_steps(torch, p))
      out_.steps.push_back(
          {.number = step.number, .start_ns = step.host_start_ns + torch.zero_ns, .step_ns = step.host_ns});
    if (out_.steps.empty() && !done_.work.empty()) {
      Span span;
      for (const DeviceWork& work : done_.work) span.add(work.start_ns, work.end_ns);
      for (const OperatorCall& call : done_.calls) span.add(call.start_ns, call.start_ns);
      out_.steps.push_back({.start_ns = span.start_ns, .step_ns = span.length_ns()});
    }
  }

  RankUse read() {
    for (const ModuleFact& module : part_.modules) modules_.insert(module.slice);
    for (const RangeFact& range : part_.ranges)
      if (is_module_range(trace_, range)) modules_.insert(range.slice);
    for (const OperatorCall& call : done_.calls)
      if (call.work.is_matrix && call.device_ns > 0) add(call);
    for (auto& [key, use] : uses_) out_.operators.push_back(std::move(use));
    sort_stably(out_.operators, std::greater(), &OperatorUse::device_ns);
    for (const DeviceWork& work : done_.work) add(work);
    share_time();
    return std::move(out_);
  }

 private:
  const OperatorCall* matrix_call(const DeviceWork& work) const {
    const OperatorCall* call = work.call < 0 ? nullptr : &done_.calls[static_cast<size_t>(work.call)];
    return call && call->work.is_matrix ? call : nullptr;
  }
  // The time at the peak rate of the operator's precision, in ns.
  double peak_ns(const OperatorCall& call) const {
    const double tflops = call.precision ? out_.peaks[*call.precision] : 0;
    return share_or_zero(static_cast<double>(call.work.flops), tflops * 1e3);
  }
  // The first step that ends after this time.
  std::vector<StepUse>::iterator step_after(int64_t time) {
    return std::ranges::upper_bound(out_.steps, time, {}, [](const StepUse& s) { return s.start_ns + s.step_ns; });
  }
  StepUse* step_at(int64_t time) {
    const auto at = step_after(time);
    return at != out_.steps.end() && at->start_ns <= time ? &*at : nullptr;
  }

  void add(const OperatorCall& call) {
    const auto flops = static_cast<double>(call.work.flops), max = static_cast<double>(call.work.max_flops);
    if (call.precision) out_.highest_tflops = std::max(out_.highest_tflops, out_.peaks[*call.precision]);
    if (flops > out_.largest_flops) {
      out_.largest_flops = flops;
      out_.largest =
          std::string(trace_.names.text(call.name)) + " " + shapes_text(trace_.names.text(call.inputs->dims));
    }
    StepUse* step = step_at(call.start_ns);
    if (!step) return;
    step->min_flops += flops;
    step->max_flops += max;
    step->peak_ns += peak_ns(call);
    uint32_t module = call.slice;
    while (module != kNoSliceIndex && !modules_.contains(module)) module = part_.slices.parent[module];
    const std::string_view around =
        module == kNoSliceIndex ? std::string_view() : trace_.names.text(part_.slices.name_id[module]);
    const auto [at, fresh] = uses_.try_emplace({around, call.name, call.precision});
    OperatorUse& use = at->second;
    if (fresh) use.module = around, use.name = trace_.names.text(call.name), use.precision = call.precision;
    ++use.calls;
    use.device_ns = sum_or_limit(use.device_ns, call.device_ns);
    use.min_flops += flops;
    use.max_flops += max;
  }

  void add(const DeviceWork& work) {
    const OperatorCall* call = matrix_call(work);
    const bool computes = work.kind == KernelClass::kComputation;
    const bool matrix = call || (work.on_tensor_cores && computes);
    const StepUseKind kind = matrix                                     ? StepUseKind::kMatrix
                             : computes                                 ? StepUseKind::kComputing
                             : work.kind == KernelClass::kCommunication ? StepUseKind::kCommunication
                                                                        : StepUseKind::kRest;
    times_[kind].push_back({work.start_ns, work.end_ns});
    if (!matrix) return;
    const int64_t ns = work.end_ns - work.start_ns;
    if (StepUse* step = step_at(call ? call->start_ns : work.start_ns)) {
      step->matrix_ns += ns;
      if (call && call->work.flops == call->work.max_flops) step->known_ns += ns;
    }
    if (!call || call->device_ns <= 0) return;
    const double rate = peak_ns(*call) / static_cast<double>(call->device_ns);
    for (auto at = step_after(work.start_ns); at != out_.steps.end() && at->start_ns < work.end_ns; ++at) {
      const int64_t from = std::max(work.start_ns, at->start_ns);
      at->peak_within_ns += rate * static_cast<double>(std::min(work.end_ns, at->start_ns + at->step_ns) - from);
    }
  }

  void share_time() {
    std::vector<Interval> taken;
    for (size_t kind = 0; kind < kStepUseKinds; ++kind) {
      const std::vector<Interval> all = union_of(std::move(times_[kind]));
      const CoveredTime own(without(all, taken));
      for (StepUse& step : out_.steps) step.ns[kind] = own.within(step.start_ns, step.start_ns + step.step_ns);
      taken.insert(taken.end(), all.begin(), all.end());
      taken = union_of(std::move(taken));
    }
  }

  const Trace& trace_;
  const Part& part_;
  const OperatorWork done_;
  RankUse out_;
  std::unordered_set<uint32_t> modules_;  // slices
  std::map<std::tuple<std::string_view, StringId, std::optional<Precision>>, OperatorUse> uses_;
  ByEnum<StepUseKind, std::vector<Interval>, kStepUseKinds> times_;
};

struct UtilisationFact {
  using Value = Utilisation;
  static Value make(const Run& run) { return make_utilisation(run.trace(), {}); }
};

}  // namespace

Utilisation make_utilisation(const Trace& trace, const Tflops& given) {
  const Result<TorchRun> torch = make_torch_run(trace, {.include_last_step = true});
  if (!torch) return {};
  const FunctionNames names(trace);
  Utilisation out;
  out.ranks.resize(torch->parts.size());
  parallel_for(out.ranks.size(),
               [&](size_t k) { out.ranks[k] = RankMeter(*torch, torch->parts[k], names, given).read(); });
  out.devices = std::ssize(trace.parts);
  for (const Part& part : trace.parts)
    if (const auto world = json_integer(json_member(meta_json(part, "distributedInfo"), "world_size")))
      out.devices = std::max(out.devices, *world);
  return out;
}

const Utilisation& utilisation_of(const Run& run) { return run.fact<UtilisationFact>(); }

double hfu_of(const Utilisation& use) {
  double peak = 0, time = 0;
  for (const RankUse& rank : use.ranks)
    for (const StepUse& step : rank.steps) peak += step.peak_ns, time += static_cast<double>(step.step_ns);
  return peak > 0 ? share_of(peak, time) : kNaN;
}

}  // namespace stageline
