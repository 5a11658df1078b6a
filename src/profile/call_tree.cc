#include "profile/call_tree.h"

#include <algorithm>
#include <unordered_map>

#include "base/by_enum.h"
#include "profile/python_stacks.h"
#include "profile/torch_view.h"

namespace stageline {
namespace {

constexpr uint32_t kNoNode = UINT32_MAX;

FrameKind frame_kind(Category category, KernelClass work) {
  if (is_device_work(category) && work == KernelClass::kCommunication) return FrameKind::kCommunication;
  if (is_device_work(category) && work == KernelClass::kMemory) return FrameKind::kMemory;
  switch (category) {
    case Category::kPythonFunction: return FrameKind::kPython;
    case Category::kCpuOp: return FrameKind::kOperator;
    case Category::kUserAnnotation: return FrameKind::kAnnotation;
    case Category::kRuntime:
    case Category::kDriver:
    case Category::kOverhead: return FrameKind::kCall;
    default: return is_device_work(category) ? FrameKind::kDevice : FrameKind::kOther;
  }
}

class CallTreeBuilder {
 public:
  CallTreeBuilder(const Trace& trace, const Part& part, const FunctionNames& names, const CallArea* area)
      : trace_(trace), part_(part), s_(part.slices), names_(names), area_(area) {}

  CallTree build() {
    if (s_.size() == 0 || !s_.has_facts()) return std::move(out_);
    choose_slices();
    find_self_times();
    find_callers();
    frame_of_name_.assign(trace_.names.size(), kUnknown);
    node_of_.assign(s_.size(), kNoNode);
    for (const uint32_t i : callers_first(caller_)) place(i);
    return std::move(out_);
  }

 private:
  static constexpr StringId kUnknown = UINT32_MAX;

  bool is_in_area(size_t i) const {
    if (!area_) return true;
    const uint32_t launch = is_device_work(category(i)) ? s_.partner[i] : kNoSliceIndex;
    return s_.start_ns[i] < area_->to_ns && s_.end_ns(i) >= area_->from_ns &&
           (area_->chosen[i] || (launch != kNoSliceIndex && area_->chosen[launch]));
  }
  int64_t duration(size_t i) const {
    if (!area_) return s_.dur_ns[i];
    return std::max<int64_t>(0, std::min(s_.end_ns(i), area_->to_ns) - std::max(s_.start_ns[i], area_->from_ns));
  }
  Category category(size_t i) const { return trace_.categories[s_.category_id[i]].kind; }

  // Takes host calls of threads, and device work wherever it is drawn. Spans of the whole profile are not calls.
  void choose_slices() {
    kept_.assign(s_.size(), false);
    for (const Lane& lane : part_.lanes)
      for (size_t i = lane.begin; i < lane.end; ++i) {
        const Category c = category(i);
        kept_[i] = (is_device_work(c) || is_host(c) || (c == Category::kOther && lane.kind == LaneKind::kHostThread)) &&
                   is_in_area(i);
      }
    out_.steps = part_.steps.size();
    if (!trace_.slice_filter.any()) return;
    std::vector<bool> chosen(s_.size(), false);
    const Result<TorchRun> run = make_torch_run(trace_, {.hta = false, .include_last_step = true});
    if (run)
      for (const auto rank = torch_rank(*run, static_cast<size_t>(&part_ - trace_.parts.data()));
           const TorchRow& row : rank->rows)
        chosen[row.slice] = true;
    for (size_t i = 0; i < kept_.size(); ++i) kept_[i] = kept_[i] && chosen[i];
    out_.steps = std::ranges::count_if(
        part_.steps, [&](const ProfilerStep& step) { return step.slice != kNoSliceIndex && chosen[step.slice]; });
  }

  // Self time is a slice's duration minus that of the kept slices directly in it.
  void find_self_times() {
    self_ns_.assign(s_.size(), 0);
    for (const Lane& lane : part_.lanes)
      for (size_t i = lane.begin; i < lane.end; ++i) {
        if (!kept_[i]) continue;
        self_ns_[i] += duration(i);
        if (is_device_work(category(i))) continue;
        uint32_t up = s_.parent[i];
        while (up != kNoSliceIndex && !kept_[up]) up = s_.parent[up];
        if (up != kNoSliceIndex) self_ns_[up] -= duration(i);
      }
  }

  void find_callers() {
    caller_ = python_callers(trace_, part_);
    const std::vector<uint32_t> backward = backward_operators(trace_, part_);
    const std::vector<uint32_t> forward = forward_operators(trace_, part_, backward, OfEqualNumbers::kLast);
    for (size_t i = 0; i < s_.size(); ++i) {
      if (backward[i] != i || forward[i] == kNoSliceIndex) continue;
      // The engine's own call around the operator is moved with it, so that forward and backward stay apart.
      caller_[s_.parent[i]] = caller_[forward[i]];
    }
  }

  void place(uint32_t i) {
    const uint32_t up = caller_[i];
    const uint32_t above = up == kNoSliceIndex ? 0 : node_of_[up];
    if (!kept_[i]) {
      node_of_[i] = above;
      return;
    }
    const Category c = category(i);
    const StringId frame = frame_of(names_.group(s_.name_id[i], c));
    const uint32_t node = child(above, frame, frame_kind(c, s_.class_of(i)));
    node_of_[i] = node;
    (is_device_work(c) ? out_.device_ns : out_.host_ns)[node] += self_ns_[i];
    ++out_.calls[node];
  }

  StringId frame_of(StringId group) {
    if (group >= frame_of_name_.size()) return out_.frames.intern(names_.text(group));
    StringId& known = frame_of_name_[group];
    if (known != kUnknown) return known;
    const std::string_view text = names_.text(group);
    known = out_.frames.intern(
        without_address(text.size() > PythonStacks::kMaxFrameBytes ? shortened_frame(text) : std::string(text)));
    return known;
  }

  uint32_t child(uint32_t above, StringId frame, FrameKind kind) {
    const uint64_t key = static_cast<uint64_t>(above) << 32 | frame;
    const auto [it, added] = child_of_[kind].try_emplace(key, static_cast<uint32_t>(out_.nodes.size()));
    if (added) {
      out_.nodes.push_back({above, frame, kind});
      out_.host_ns.push_back(0);
      out_.device_ns.push_back(0);
      out_.calls.push_back(0);
    }
    return it->second;
  }

  const Trace& trace_;
  const Part& part_;
  const Slices& s_;
  const FunctionNames& names_;
  const CallArea* area_;  // nullptr: everything
  CallTree out_;
  std::vector<bool> kept_;
  std::vector<int64_t> self_ns_;
  std::vector<uint32_t> caller_, node_of_;
  std::vector<StringId> frame_of_name_;
  ByEnum<FrameKind, std::unordered_map<uint64_t, uint32_t>, kFrameKindCount> child_of_;
};

}  // namespace

CallTree call_tree(const Trace& trace, const Part& part, const FunctionNames& names, const CallArea* area) {
  return CallTreeBuilder(trace, part, names, area).build();
}

}  // namespace stageline
