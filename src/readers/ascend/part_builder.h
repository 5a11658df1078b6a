// The kinds of rows that an Ascend profile has, for readers/common/part_builder.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "readers/common/part_builder.h"

namespace stageline::ascend {

enum class RowKind : uint8_t {
  kOperator,       // PYTORCH_API: "cpu_op"
  kPython,         // PYTORCH_API traces of Python: "python_function"
  kAnnotation,     // ProfilerStep#N: "user_annotation"
  kCannApi,        // "cann_api"
  kRange,          // mstx on the host: "mstx"
  kKernel,         // a task of COMPUTE_TASK_INFO: "kernel", class computation
  kCommunication,  // an operation of COMMUNICATION_OP: "kernel", class communication
  kMemcpy,         // "gpu_memcpy"
  kMemset,         // "gpu_memset"
  kDeviceRange,    // mstx on the device: "gpu_user_annotation"
  kDeviceSync,     // event record and wait, notify, …: "device_sync"
  kTransfer,       // a task of COMMUNICATION_TASK_INFO: "hccl_task"
  kGarbage,        // garbage collection of Python: "overhead"
};
inline constexpr size_t kRowKindCount = static_cast<size_t>(RowKind::kGarbage) + 1;

// In the order of RowKind. Where Kineto has a word for a category it is used, so that exports open in Kineto's tools.
inline constexpr RowCategory kKinds[kRowKindCount] = {
    {"cpu_op", Category::kCpuOp, KernelClass::kNone},
    {"python_function", Category::kPythonFunction, KernelClass::kNone},
    {"user_annotation", Category::kUserAnnotation, KernelClass::kNone},
    {"cann_api", Category::kRuntime, KernelClass::kNone},
    {"mstx", Category::kUserAnnotation, KernelClass::kNone},
    {"kernel", Category::kKernel, KernelClass::kComputation},
    {"kernel", Category::kKernel, KernelClass::kCommunication},
    {"gpu_memcpy", Category::kMemcpy, KernelClass::kMemory},
    {"gpu_memset", Category::kMemset, KernelClass::kMemory},
    {"gpu_user_annotation", Category::kGpuAnnotation, KernelClass::kNone},
    {"device_sync", Category::kDeviceSync, KernelClass::kOther},
    {"hccl_task", Category::kDeviceTask, KernelClass::kNone},
    {"overhead", Category::kOverhead, KernelClass::kNone},
};

// Returns the name of the lane with a group's operations, "Communication pp 10.0.0.1%eth0_60000_0_17…": the dimensions
// that the metadata says the group spans, then HCCL's name of the group. Without dimensions it has the name alone.
inline std::string communication_lane(const std::string& dimensions, const std::string& group) {
  return "Communication " + (dimensions.empty() ? "" : dimensions + " ") + group;
}

class PartBuilder : public stageline::PartBuilder {
 public:
  explicit PartBuilder(std::string source) : stageline::PartBuilder(std::move(source), kKinds, "ascend") {}
  uint32_t add(uint32_t lane, RowKind kind, int64_t start_ns, int64_t end_ns, uint32_t name,
               uint32_t correlation = kNoCorrelation) {
    return stageline::PartBuilder::add(lane, static_cast<size_t>(kind), start_ns, end_ns, name, correlation);
  }
};

// The result of reading one rank of an Ascend profile, from a database or from text.
struct RankPart {
  std::optional<Error> error;
  Part part;  // with ids of `names`
  FileNames names;
  Diagnostics notes;
  std::vector<std::string> tables;  // those tables of its database that are read; sorted
};

}  // namespace stageline::ascend
