// The facts of a slice of a profiler trace besides its times: category, kernel class, and the sparse facts that only
// some slices have (bytes copied, collective, event waited for).
//
// Sparse facts are side tables ordered by slice; find them with `fact_of`.
#pragma once

#include "base/string_pool.h"

namespace stageline {

inline constexpr uint32_t kNoSliceIndex = UINT32_MAX;
inline constexpr uint32_t kNoCorrelation = UINT32_MAX;

// Kineto's category of an event, in any spelling that its versions used (sources: specs of the trace JSON,
// ActivityType.h of kineto; older spellings are Operator, Kernel, Runtime …).
enum class Category : uint8_t {
  kOther,  // not a category of Kineto's
  kCpuOp,
  kUserAnnotation,
  kPythonFunction,
  kRuntime,  // cuda_runtime (also HIP), xpu_runtime, mtia_runtime, privateuse1_runtime, glow_runtime
  kDriver,   // cuda_driver, xpu_driver, privateuse1_driver
  kOverhead,
  kKernel,
  kMemcpy,
  kMemset,
  kMtiaWork,       // mtia_ccp_events
  kDeviceSync,     // cuda_sync, xpu_sync: waits, not work
  kDeviceEvent,    // cuda_event: 1 ns marks
  kGpuAnnotation,  // gpu_user_annotation
  kProfilerRange,  // cuda_profiler_range: CUPTI counters
  kCollective,     // collective_comm and other device-side rows without stream work
  kDeviceTask,     // hccl_task: what a communication operation of an NPU is made of
  kSpan,           // Trace: the bar of the whole profile
};
Category category_of(std::string_view text);

constexpr bool is_device_work(Category c) {
  return c == Category::kKernel || c == Category::kMemcpy || c == Category::kMemset || c == Category::kMtiaWork;
}
constexpr bool is_launch_call(Category c) { return c == Category::kRuntime || c == Category::kDriver; }
constexpr bool is_host(Category c) {
  return c == Category::kCpuOp || c == Category::kUserAnnotation || c == Category::kPythonFunction ||
         is_launch_call(c) || c == Category::kOverhead;
}

// The kind of a device's work, in the order in which HTA lists its types.
enum class KernelClass : uint8_t {
  kNone,  // not device work
  kComputation,
  kCommunication,
  kMemory,
  kOther,  // synchronisation and launches that appear on a device's row
};
inline constexpr size_t kKernelClassCount = 5;
std::string_view kernel_class_name(KernelClass c);  // "COMPUTATION", "COMMUNICATION", "MEMORY", "OTHER", ""

// Classifies a kernel our way: by category first, then by name (collective libraries beyond NCCL, ROCm's copy kernels);
// a kernel with a collective argument is communication. Definition: docs/analyses/kernel-classes.md.
KernelClass classify_kernel(Category category, std::string_view name, bool has_collective);
// Classifies a kernel as HTA does, by its name alone (utils.get_kernel_type).
KernelClass hta_kernel_class(std::string_view name);
// Shortens a name as HTA does, without template arguments and parameters (utils.shorten_name).
std::string short_kernel_name(std::string_view name);
// Labels a copy as HTA does: "Memset", "Memcpy DtoH", …, "Memcpy Unknown" (utils.get_memory_kernel_type).
std::string_view memory_kernel_label(std::string_view name);

// ---- sparse facts ---------------------------------------------------------------------------

struct CopyFact {  // for copies and memsets
  uint32_t slice = 0;
  int64_t bytes = -1;
  double bandwidth_gbps = 0;  // as Kineto wrote it; 0 when it did not
};

struct SyncFact {  // for cuda_sync rows
  uint32_t slice = 0;
  int64_t wait_on_stream = -1;
  int64_t wait_on_record_correlation = -1;  // the number of the cudaEventRecord call that is waited for
};

struct CollectiveFact {  // for record_param_comms and communication kernels
  uint32_t slice = 0;
  StringId name = 0;   // "allreduce", "send", …
  StringId dtype = 0;  // "BFloat16"
  StringId group = 0;  // process group name
  StringId group_description = 0;
  StringId group_ranks = 0;  // "[0, 1, …]" as written; Kineto cuts the list after 30 ranks
  StringId in_split = 0, out_split = 0;
  int64_t in_elements = 0, out_elements = 0;
  int64_t group_size = 0;
  int64_t peer = -1;  // for send and recv: the argument "Rank", which is the other side's rank within the group
  int64_t src_rank = -1, dst_rank = -1;  // global ranks
  int64_t seq = -1;
  StringId comms_id = 0;  // equal on all ranks of one collective
  int64_t bytes = -1;     // the larger of in and out elements times the size of dtype; −1 when unknown
  auto texts() {
    return std::array{&name, &dtype, &group, &group_description, &group_ranks, &in_split, &out_split, &comms_id};
  }
};

struct OperatorFact {  // for operators that take part in autograd
  uint32_t slice = 0;
  int32_t forward_thread = -1;  // "Fwd thread id", a number of RecordFunction's; 0 in the forward pass
  int64_t sequence_number = -1;
};

struct PythonFact {  // for python_function rows whose parent is not the enclosing frame
  uint32_t slice = 0;
  uint32_t parent = kNoSliceIndex;
};

struct InputFact {  // for operators recorded with record_shapes; the texts are as in the file
  uint32_t slice = 0;
  StringId dims = 0;      // "[[5, 128], [], []]"
  StringId types = 0;     // "[\"float\", \"int\", \"\"]"
  StringId concrete = 0;  // "[\"\", \"[1, 1]\", …]"; kept only where FLOPs or a message's peer are computed from it
  auto texts() { return std::array{&dims, &types, &concrete}; }
};

struct KernelFact {  // how a kernel was launched; −1 when the trace does not record it
  uint32_t slice = 0;
  float blocks_per_sm = -1;
  float warps_per_sm = -1;
  float occupancy_percent = -1;  // "est. achieved occupancy %"
  int32_t registers = -1;        // registers for each thread
  int32_t shared_bytes = -1;     // static and dynamic together
  StringId grid = 0, block = 0;  // "[512, 1, 1]"
  auto texts() { return std::array{&grid, &block}; }
};

struct StackFact {  // for operators of verbose captures, TorchScript and traces up to torch 1.10
  uint32_t slice = 0;
  StringId stack = 0;    // "Call stack": entries, innermost first, with ";" between
  StringId modules = 0;  // "Module Hierarchy", which TorchScript writes
  auto texts() { return std::array{&stack, &modules}; }
};

struct ModuleFact {  // for nn.Module calls
  uint32_t slice = 0;
  int64_t module_id = -1;  // "Python module id": equal for calls of one object
};

struct OwnerFact {  // for launch calls whose "External id" names another operator than the innermost one around them
  uint32_t slice = 0;
  uint32_t owner = kNoSliceIndex;
};

// The contents of a range's text, if the range was made to describe pipeline work (mstx, NVTX). The slice has the
// range's short name ("forward_step"); its partner is the same range on the device.
struct RangeFact {
  uint32_t slice = 0;
  StringId message = 0;  // the whole text as recorded: "{'name': 'forward_step', 'current_microbatch': 3}"
  StringId domain = 0;   // "default", "communication", …
  int32_t micro_batch = -1, chunk = -1, stage = -1, step = -1;  // −1 where the text does not say
  auto texts() { return std::array{&message, &domain}; }
};

// The kind of operator that a device task ran, and the unit (Ascend's COMPUTE_TASK_INFO, kernel_details.csv).
struct TaskFact {
  uint32_t slice = 0;
  StringId op_type = 0;  // "MatMulV2"
  StringId unit = 0;     // the task's type: "AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", …
  StringId outputs = 0;  // shapes: "\"1024,3072\""
  auto texts() { return std::array{&op_type, &unit, &outputs}; }
};

// One transfer or wait of a communication operation on one link (COMMUNICATION_TASK_INFO, Level1 and up).
struct TransferFact {
  uint32_t slice = 0;           // the device task; it does not count as work (kDeviceTask), its operation does
  uint32_t op = kNoSliceIndex;  // the slice of the communication operation that it is a part of
  StringId task = 0;            // "Notify_Wait", "Notify_Record", "Memcpy", "Reduce_Inline", …
  StringId transport = 0;       // "SDMA", "RDMA", "LOCAL"
  StringId link = 0;            // "HCCS", "PCIE", "ROCE", …
  int64_t bytes = -1;
  int64_t notify = -1;
  int32_t plane = -1;
  // Global ranks where the group's members are known, else ranks within the group.
  int32_t src_rank = -1, dst_rank = -1;
  auto texts() { return std::array{&task, &transport, &link}; }
};

// The node of an execution trace (ExecutionTraceObserver, Chakra) that this slice is: its place in the tree of
// operators, and its tensors.
struct GraphNodeFact {
  uint32_t slice = 0;
  int64_t node = -1, parent = -1;  // ids of nodes; parent: the control dependency
  StringId inputs = 0,
           outputs = 0;  // "[[5,4,0,64,4,\"cuda:0\"],3,…]": of a tensor id, storage, offset, elements, item size
  StringId schema = 0;   // "aten::add.Tensor(Tensor self, …) -> Tensor"
  auto texts() { return std::array{&inputs, &outputs, &schema}; }
};

struct MemoryRecord {  // [memory] instants
  int64_t time_ns = 0;
  uint64_t address = 0;
  int64_t bytes = 0;  // negative when memory was freed
  int64_t total_allocated = -1, total_reserved = -1;
  int32_t device_type = 0, device_id = -1;  // device types as c10 numbers them: 0 CPU, 1 CUDA, …
  uint32_t lane = 0;
  uint32_t file_index = 0;
};

// Facts of single slices as files state them, a list for each kind.
struct SliceFacts {
  std::vector<CopyFact> copies;
  std::vector<SyncFact> syncs;
  std::vector<CollectiveFact> collectives;
  std::vector<OperatorFact> operators;
  std::vector<InputFact> inputs;
  std::vector<KernelFact> kernels;
  std::vector<StackFact> stacks;
  std::vector<RangeFact> ranges;
  std::vector<TransferFact> transfers;
  std::vector<TaskFact> tasks;
};

// Calls body(list) for each list of SliceFacts, a pointer to a member.
template <class Body> void each_fact_list(Body&& body) {
  using F = SliceFacts;
  [&](auto... list) { (body(list), ...); }(&F::copies, &F::syncs, &F::collectives, &F::operators, &F::inputs,
                                           &F::kernels, &F::stacks, &F::ranges, &F::transfers, &F::tasks);
}

// Replaces the texts of facts, ids of one pool, by those of another.
template <class Fact> void map_texts(std::vector<Fact>& facts, const std::vector<StringId>& new_id) {
  if constexpr (requires(Fact& fact) { fact.texts(); })
    for (Fact& fact : facts)
      for (StringId* id : fact.texts()) *id = new_id[*id];
}
inline void map_texts(SliceFacts& facts, const std::vector<StringId>& new_id) {
  each_fact_list([&](auto list) { map_texts(facts.*list, new_id); });
}

template <class Fact> const Fact* fact_of(const std::vector<Fact>& facts, uint32_t slice) {
  const auto it = std::ranges::lower_bound(facts, slice, {}, &Fact::slice);
  return it != facts.end() && it->slice == slice ? &*it : nullptr;
}

// Returns the size in bytes of one element of a c10 ScalarType, by its name ("BFloat16" → 2); 0 when unknown.
int dtype_bytes(std::string_view dtype);

}  // namespace stageline
