#include "profile/operator_work.h"

#include "base/json_members.h"
#include "model/torch_facts.h"

namespace stageline {
namespace {

class Reader {
 public:
  Reader(const Trace& trace, const Part& part, const FunctionNames& names)
      : trace_(trace), part_(part), made_(function_events(trace, part, names)), call_of_(made_.events.size(), -1) {}

  OperatorWork read() {
    out_.device = device_name(part_);
    out_.published = published_peaks(out_.device);
    if (!out_.published) out_.published = recorded_peaks(part_);
    for (const RangeFact& range : part_.ranges)
      if (const auto flops = recorded_flops(trace_, range)) recorded_.emplace(range.slice, flops->flops);
    out_.has_shapes = !part_.inputs.empty() || !recorded_.empty();
    find_tensor_cores();
    if (out_.has_shapes) add_operators();
    add_device_work();
    return std::move(out_);
  }

 private:
  static bool is_work(const FunctionEvent& event) {
    return event.on_device && !event.is_annotation() && event.slice != kNoSliceIndex;
  }

  bool is_tensor_kernel(const FunctionEvent& event) {
    const StringId name = part_.slices.name_id[event.slice];
    const auto [at, fresh] = tensor_name_.try_emplace(name, false);
    if (fresh) {
      // Kernels of AMD's library name the matrix instruction for plain FP32 as well.
      const std::string_view text = trace_.names.text(name);
      at->second = uses_tensor_cores(text) && !text.starts_with("Cijk_");
    }
    return at->second;
  }

  void find_tensor_cores() {
    on_tensor_cores_.assign(made_.events.size(), false);
    for (const FunctionEvent& e : made_.events) {
      if (!is_work(e) || e.owner == FunctionEvent::kNone || !is_tensor_kernel(e)) continue;
      for (int32_t up = e.owner; up != FunctionEvent::kNone && !on_tensor_cores_[up]; up = made_.events[up].parent)
        on_tensor_cores_[up] = true;
    }
  }

  void add_operators() {
    std::unordered_map<uint32_t, const InputFact*> inputs;
    for (const InputFact& fact : part_.inputs)
      if (has_formula(part_.slices.name_id[fact.slice])) inputs.emplace(fact.slice, &fact);
    std::vector<bool> unfit(made_.events.size());                    // a formula, but not for these shapes or values
    std::vector<bool> holds(made_.events.size());                    // something inside is counted
    std::map<std::array<StringId, 4>, std::optional<OpWork>> works;  // key: name, shapes, types, values
    for (size_t i = 0; i < made_.events.size(); ++i) {
      const FunctionEvent& e = made_.events[i];
      if (e.parent != FunctionEvent::kNone && call_of_[e.parent] >= 0) {
        call_of_[i] = call_of_[e.parent];
        OperatorCall& call = out_.calls[call_of_[i]];
        if (e.category == Category::kCpuOp && recorded_.contains(call.slice))
          call.slice = e.slice, call.name = part_.slices.name_id[e.slice];
        continue;
      }
      if (e.on_device || e.slice == kNoSliceIndex) continue;
      if (const auto flops = recorded_.find(e.slice); flops != recorded_.end()) {
        static const InputFact nothing;
        call_of_[i] = static_cast<int32_t>(out_.calls.size());
        const OpWork work{flops->second, flops->second, 0, {}, true};
        out_.calls.push_back({e.slice,
                              part_.slices.name_id[e.slice],
                              &nothing,
                              work,
                              {},
                              e.start_ns,
                              std::max<int64_t>(e.device_ns, 0)});
        continue;
      }
      const auto fact = inputs.find(e.slice);
      if (fact == inputs.end()) continue;
      const InputFact& in = *fact->second;
      const StringId name = part_.slices.name_id[e.slice];
      const auto [memo, is_new] = works.try_emplace({name, in.dims, in.types, in.concrete});
      if (is_new)
        memo->second = op_work(trace_.names.text(name), trace_.names.text(in.dims), trace_.names.text(in.types),
                               trace_.names.text(in.concrete));
      const std::optional<OpWork>& work = memo->second;
      if (!work) {
        unfit[i] = e.parent == FunctionEvent::kNone || !unfit[e.parent];
        continue;
      }
      call_of_[i] = static_cast<int32_t>(out_.calls.size());
      for (int32_t up = e.parent; up != FunctionEvent::kNone && !holds[up]; up = made_.events[up].parent) {
        holds[up] = true;
        unfit[up] = false;
      }
      const auto precision = precision_of(work->type, work->is_matrix && on_tensor_cores_[i]);
      out_.calls.push_back({e.slice, name, &in, *work, precision, e.start_ns, std::max<int64_t>(e.device_ns, 0)});
    }
    out_.without_work = std::ranges::count(unfit, true);
  }

  void add_device_work() {
    for (const FunctionEvent& e : made_.events) {
      if (!is_work(e)) continue;
      const int32_t call = e.owner == FunctionEvent::kNone ? -1 : call_of_[e.owner];
      if (call >= 0 && !recorded_.empty()) see_kernel(e, out_.calls[call]);
      out_.work.push_back({e.start_ns, e.end_ns, call, kind_of(e.slice), is_tensor_kernel(e)});
    }
  }

  // The longest kernel of a call with recorded FLOPs says which precision it has.
  void see_kernel(const FunctionEvent& event, OperatorCall& call) {
    const InputFact* inputs = fact_of(part_.inputs, event.slice);
    int64_t& longest = longest_of_[call.slice];
    if (!inputs || call.work.min_bytes != 0 || event.end_ns - event.start_ns <= longest) return;
    longest = event.end_ns - event.start_ns;
    call.inputs = inputs;
    const std::string_view types = trace_.names.text(inputs->types);
    call.precision = precision_of(types.substr(0, types.find(';')), true);
  }

  KernelClass kind_of(uint32_t slice) const {
    return slice < part_.slices.kernel_class.size() ? part_.slices.class_of(slice) : KernelClass::kNone;
  }

  bool has_formula(StringId name) {
    const auto [at, fresh] = has_formula_.try_emplace(name, false);
    if (fresh) at->second = has_work_formula(trace_.names.text(name));
    return at->second;
  }

  const Trace& trace_;
  const Part& part_;
  const FunctionEvents made_;
  OperatorWork out_;
  std::vector<int32_t> call_of_;       // for each event: the call that it is or is inside of; −1: none
  std::vector<bool> on_tensor_cores_;  // for each event: some work inside it ran on tensor or matrix units
  std::unordered_map<StringId, bool> has_formula_, tensor_name_;
  std::unordered_map<uint32_t, int64_t> recorded_, longest_of_;  // by slice: FLOPs of a range; time of a kernel
};

}  // namespace

std::optional<RecordedFlops> recorded_flops(const Trace& trace, const RangeFact& range) {
  if (trace.names.text(range.domain) != "mfu_flops") return std::nullopt;
  const std::string_view text = trace.names.text(range.message);
  const size_t dash = text.find('-');
  const auto flops = parse_int(text.substr(0, dash));
  if (!flops || *flops <= 0 || dash == std::string_view::npos) return std::nullopt;
  return RecordedFlops{*flops, text.substr(dash + 1)};
}

std::vector<RecordedKernel> recorded_kernels(const Trace& trace, const Part& part) {
  const Slices& s = part.slices;
  const DevicePeaks peaks = recorded_peaks(part).value_or(DevicePeaks());
  std::vector<RecordedKernel> all, out;
  for (const TaskFact& task : part.tasks)
    if (const uint32_t op = s.parent[task.slice]; op != kNoSliceIndex) all.push_back({task.slice, op, {}, 0});
  const auto start = [&](const RecordedKernel& k) { return std::pair(s.start_ns[k.op], s.start_ns[k.slice]); };
  std::ranges::sort(all, {}, start);
  for (const RangeFact& range : part.ranges) {
    const auto flops = recorded_flops(trace, range);
    if (!flops) continue;
    double peak = -1;
    for (auto at = std::ranges::lower_bound(all, std::pair(s.start_ns[range.slice], INT64_MIN), {}, start);
         at != all.end() && s.start_ns[at->op] <= s.end_ns(range.slice); ++at) {
      if (peak < 0) {
        const InputFact* inputs = fact_of(part.inputs, at->slice);
        const std::string_view types = inputs ? trace.names.text(inputs->types) : std::string_view();
        auto precision = precision_of(types.substr(0, types.find(';')), false);
        if (precision == Precision::kFp32) precision = Precision::kFp16;  // msprof-analyze has one peak for both
        peak = precision ? peaks.tflops[*precision] : 0;
      }
      out.push_back({at->slice, at->op, *flops, peak});
    }
  }
  return out;
}

std::string_view recorded_device(const Part& part) {
  const std::vector<JsonMember> devices = json_members(meta_json(part, "DeviceInfo"), 1);
  return devices.empty() ? std::string_view() : devices[0].value;
}

std::optional<DevicePeaks> recorded_peaks(const Part& part) {
  const auto number = [device = recorded_device(part)](std::string_view key, int64_t most) {
    const int64_t value = json_integer(json_member(device, key)).value_or(0);
    return value < most ? static_cast<double>(value) : 0;
  };
  const double tflops = number("ai_core_num", 10'000) * number("aic_frequency", 100'000) * 8192 / 1e6;
  if (!(tflops > 0)) return std::nullopt;
  DevicePeaks peaks{.source = kRecordedPeaks};
  peaks.tflops[Precision::kFp16] = peaks.tflops[Precision::kBf16] = tflops;
  peaks.tflops[Precision::kInt8] = 2 * tflops;
  return peaks;
}

OperatorWork operator_work(const Trace& trace, const Part& part, const FunctionNames& names) {
  return Reader(trace, part, names).read();
}

}  // namespace stageline
