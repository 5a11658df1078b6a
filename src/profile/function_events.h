// The function events of one rank: what torch.profiler's key_averages() adds up, rebuilt from slices.
//
//   slices ──▶ events by thread ──▶ tree (enclosing call) ──▶ same-name wrappers joined ──▶ self and device times
//
// An event is a host call (operator, annotation, Python frame, runtime or driver call, overhead), or a piece of device
// work or another row of a device. It may also be a memory record outside all calls ("[memory]"). Source of the rules:
// torch/autograd/profiler.py (_parse_kineto_results) and profiler_util.py. Differences: docs/analyses/operators.md.
#pragma once

#include "model/trace.h"

namespace stageline {

struct FunctionEventOptions {
  // Python frames are events of their own. Without this they are left out before the tree is built, so the time between
  // operators belongs to the annotation around them, as in a capture without with_stack.
  bool python_frames = false;
  // Repeats torch's bugs. Memory is charged to every call open at the time, on any thread (Stageline: of the record's
  // thread). Calls outside all operators are on a thread of their own (Stageline: they count in the annotation around
  // them). A joined wrapper's kernels are lost (Stageline: kept). Annotations of devices are their own work. Waits
  // (cuda_sync) are device time of the operator (Stageline: not).
  bool as_torch = false;
};

// The meaning of names for function events; made once for each trace. O(names).
class FunctionNames {
 public:
  static constexpr StringId kMemory = UINT32_MAX;           // name of events that are memory records
  static constexpr StringId kOutOfMemory = UINT32_MAX - 1;  // name of allocations that failed

  explicit FunctionNames(const Trace& trace);

  // Returns the name under which events are counted: "ProfilerStep#3" → "ProfilerStep*", and, where overloads were
  // recorded, operators "aten::add.Tensor" → "aten::add". The result is a name id of the trace, or one that only text()
  // knows.
  StringId group(StringId name, Category category) const {
    return category == Category::kCpuOp ? operator_group_[name] : (flags_[name] & kStep) != 0 ? step_ : name;
  }
  // Returns the text of a group; kMemory → "[memory]", kOutOfMemory → "[OutOfMemory]".
  std::string_view text(StringId group) const;
  // Returns the overload, "Tensor" for the operator "aten::add.Tensor"; "" for other names. `name` is an id of the
  // trace.
  std::string_view overload(StringId name) const;
  bool is_dropped(StringId name) const { return (flags_[name] & kDropped) != 0; }   // aten::is_leaf and the like
  bool is_async_work(StringId name) const { return (flags_[name] & kAsync) != 0; }  // "nccl:all_reduce"

 private:
  enum : uint8_t { kDropped = 1, kAsync = 2, kStep = 4 };
  StringId own(std::string_view text);
  const StringPool* names_;
  std::vector<uint8_t> flags_;            // for each name id
  std::vector<StringId> operator_group_;  // for each name id
  StringPool own_;                        // texts that the trace does not have; their ids come after the trace's
  StringId step_ = 0;
};

struct FunctionEvent {
  int64_t start_ns = 0, end_ns = 0;
  // Own time without direct children; below 0 where these overlap; 0 of async and device events.
  int64_t self_host_ns = 0;
  int64_t device_ns = 0;           // for a host call, work of the calls inside it too; for a device event, its duration
  int64_t self_device_ns = 0;      // for a host call, the work that it owns itself
  uint32_t slice = kNoSliceIndex;  // slice of the part; memory records have none
  int32_t parent = kNone;          // index of the enclosing event, which is always smaller than the event's own index
  int32_t owner = kNone;           // for device work, the host call whose self_device_ns contains it
  StringId name = 0;               // as FunctionNames::group() returns it
  uint32_t thread = 0;             // lane of the part, or kLooseThread
  Category category = Category::kOther;
  bool on_device = false;
  bool is_async = false;  // it ends on another thread, so it has no parent, no children and no self time

  static constexpr int32_t kNone = -1;
  static constexpr uint32_t kLooseThread = UINT32_MAX;  // torch's thread of calls that no operator made

  int64_t host_ns() const { return on_device ? 0 : end_ns - start_ns; }
  bool is_annotation() const { return category == Category::kUserAnnotation || category == Category::kGpuAnnotation; }
};

struct FunctionMemory {  // bytes allocated minus bytes freed while the call ran
  int64_t host = 0, self_host = 0, device = 0, self_device = 0;
};

struct FunctionEvents {
  // Host calls thread by thread, callers before callees; then device events; then memory records.
  std::vector<FunctionEvent> events;
  std::vector<FunctionMemory> memory;  // for each event; empty when the rank has no memory records
  // Maps each slice to its event. For slices without one (skipped frames, dropped names, joined wrappers) it is the
  // event around them, or kNone.
  std::vector<int32_t> event_of_slice;

  // Returns indices of `events` in torch's order: by start, longer first, then the source's order. O(n log n).
  std::vector<uint32_t> in_torch_order(const Part& part) const;
};

// Makes events of the slices that the trace's --steps and --range leave. O(n); O(n log n) where threads are mixed.
// Memory: 64 B an event and 4 B a slice.
FunctionEvents function_events(const Trace& trace, const Part& part, const FunctionNames& names,
                               const FunctionEventOptions& options = {});

}  // namespace stageline
