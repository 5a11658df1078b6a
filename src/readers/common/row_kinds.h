// The kinds of rows that profilers of GPUs have, in Kineto's words: a PartBuilder is made with kKinds, and its rows are
// added with these constants.
#pragma once

#include <cstdint>
#include <iterator>

#include "readers/common/part_builder.h"

namespace stageline::gpu_rows {

enum Kind : uint8_t {
  kOperator,
  kAnnotation,
  kPython,
  kRuntime,
  kDriver,
  kKernel,
  kMemcpy,
  kMemset,
  kSync,
  kOverhead,
  kDeviceRange,
  kHostCall,
  kSystem
};
inline constexpr RowCategory kKinds[] = {
    {"cpu_op", Category::kCpuOp, KernelClass::kNone},
    {"user_annotation", Category::kUserAnnotation, KernelClass::kNone},
    {"python_function", Category::kPythonFunction, KernelClass::kNone},
    {"cuda_runtime", Category::kRuntime, KernelClass::kNone},
    {"cuda_driver", Category::kDriver, KernelClass::kNone},
    {"kernel", Category::kKernel, KernelClass::kNone},
    {"gpu_memcpy", Category::kMemcpy, KernelClass::kNone},
    {"gpu_memset", Category::kMemset, KernelClass::kNone},
    {"cuda_sync", Category::kDeviceSync, KernelClass::kNone},
    {"overhead", Category::kOverhead, KernelClass::kNone},
    {"gpu_user_annotation", Category::kGpuAnnotation, KernelClass::kNone},
    {"host_call", Category::kOther, KernelClass::kNone},
    {"system", Category::kOther, KernelClass::kNone},
};
static_assert(std::size(kKinds) == kSystem + 1);

}  // namespace stageline::gpu_rows
