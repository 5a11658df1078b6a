#include "model/slice_facts.h"

#include <array>
#include <utility>

#include "base/by_enum.h"

namespace stageline {
namespace {

bool any_of_prefixes(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view p) { return text.starts_with(p); });
}
bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view w) { return text.find(w) != std::string_view::npos; });
}

}  // namespace

Category category_of(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, Category>, 46> kKnown = {{
      {"cpu_op", Category::kCpuOp},
      {"Operator", Category::kCpuOp},
      {"user_annotation", Category::kUserAnnotation},
      {"python_function", Category::kPythonFunction},
      {"Python", Category::kPythonFunction},
      {"cuda_runtime", Category::kRuntime},
      {"Runtime", Category::kRuntime},
      {"hip_runtime", Category::kRuntime},
      {"mtia_runtime", Category::kRuntime},
      {"glow_runtime", Category::kRuntime},
      {"xpu_runtime", Category::kRuntime},
      {"privateuse1_runtime", Category::kRuntime},
      {"cuda_driver", Category::kDriver},
      {"hip_driver", Category::kDriver},
      {"xpu_driver", Category::kDriver},
      {"privateuse1_driver", Category::kDriver},
      {"cann_api", Category::kRuntime},
      {"mstx", Category::kUserAnnotation},
      {"overhead", Category::kOverhead},
      {"kernel", Category::kKernel},
      {"Kernel", Category::kKernel},
      {"gpu_memcpy", Category::kMemcpy},
      {"Memcpy", Category::kMemcpy},
      {"gpu_memset", Category::kMemset},
      {"Memset", Category::kMemset},
      {"mtia_ccp_events", Category::kMtiaWork},
      {"cuda_sync", Category::kDeviceSync},
      {"xpu_sync", Category::kDeviceSync},
      {"hip_sync", Category::kDeviceSync},
      {"device_sync", Category::kDeviceSync},
      {"privateuse1_sync", Category::kDeviceSync},
      {"cuda_event", Category::kDeviceEvent},
      {"gpu_user_annotation", Category::kGpuAnnotation},
      {"cuda_profiler_range", Category::kProfilerRange},
      {"collective_comm", Category::kCollective},
      {"hpu_op", Category::kCollective},
      {"hccl_task", Category::kDeviceTask},
      {"mtia_insight", Category::kCollective},
      {"Trace", Category::kSpan},
      {"privateuse1_kernel", Category::kKernel},
      {"privateuse1_memcpy", Category::kMemcpy},
      {"privateuse1_memset", Category::kMemset},
      {"xpu_kernel", Category::kKernel},
      {"xpu_memcpy", Category::kMemcpy},
      {"xpu_memset", Category::kMemset},
      {"privateuse1_user_annotation", Category::kGpuAnnotation},
  }};
  for (const auto& [name, kind] : kKnown)
    if (name == text) return kind;
  return Category::kOther;
}

std::string_view kernel_class_name(KernelClass c) {
  static constexpr auto kTexts = texts_by<KernelClass::kOther>({"", "COMPUTATION", "COMMUNICATION", "MEMORY", "OTHER"});
  return kTexts[c];
}

KernelClass classify_kernel(Category category, std::string_view name, bool has_collective) {
  switch (category) {
    case Category::kMemcpy:
    case Category::kMemset: return KernelClass::kMemory;
    case Category::kDeviceSync: return KernelClass::kOther;
    case Category::kKernel:
    case Category::kMtiaWork: break;
    default: return KernelClass::kNone;
  }
  if (has_collective) return KernelClass::kCommunication;
  // No other rules for MTIA kernels are written down anywhere.
  if (category == Category::kMtiaWork) return hta_kernel_class(name);
  // The names of NCCL and RCCL, MSCCL(++), oneCCL, HCCL, NVSHMEM and DeepEP, AMD's MoRI, symmetric memory, and the
  // custom all-reduces of vLLM, SGLang, TensorRT-LLM and FlashInfer.
  if (contains_any(name, {"ncclKernel",
                          "ncclDevKernel",
                          "nccldevkernel",
                          "ncclSym",
                          "rccl",
                          "msccl",
                          "oneccl",
                          "nvshmem",
                          "deep_ep::",
                          "internode::",
                          "intranode::",
                          "internode_ll::",
                          "notify_dispatch",
                          "notify_combine",
                          "EpDispatch",
                          "EpCombine",
                          "cross_device_reduce",
                          "multimem_all_",
                          "multimem_one_shot",
                          "one_shot_all_reduce",
                          "two_shot_all_reduce",
                          "allreduce_one_shot",
                          "allreduce_two_shot",
                          "oneShotAllReduce",
                          "twoShotAllReduce",
                          "customAllReduce",
                          "allreduce_fusion",
                          "allreduceFusion",
                          "lamport",
                          "quickreduce"}) ||
      any_of_prefixes(name, {"nccl", "hccl"}))
    return KernelClass::kCommunication;
  if (any_of_prefixes(name, {"Memcpy", "Memset", "__amd_rocclr_copy", "__amd_rocclr_fill", "CopyDeviceToHost",
                             "CopyHostToDevice", "CopyDeviceToDevice", "FillBuffer"}))
    return KernelClass::kMemory;
  return KernelClass::kComputation;
}

KernelClass hta_kernel_class(std::string_view name) {
  if (any_of_prefixes(name, {"nccl", "hip", "hccl"}) || contains_any(name, {"ncclKernel"}))
    return KernelClass::kCommunication;
  if (any_of_prefixes(name, {"Memcpy", "Memset", "dma"})) return KernelClass::kMemory;
  if (any_of_prefixes(name, {"Stream Wait Event", "runFunction", "job_exe", "packet", "pe_exe", "cpum_exe_subgraph",
                             "collective_subgraph_execution"}) ||
      contains_any(name, {"Memcpy", "Memset", "dma", "Sync"}) ||
      (name.starts_with("cuda") && name.find("LaunchKernel", 4) != std::string_view::npos))
    return KernelClass::kOther;
  return KernelClass::kComputation;
}

std::string short_kernel_name(std::string_view name) {
  if (any_of_prefixes(name, {"Memcpy", "Memset", "hipMemcpy", "hipMemset", "dma"}) ||
      name.find_first_of("<(") == std::string_view::npos)
    return std::string(name);
  std::string kept;  // used as a stack of characters: a closing bracket pops back to its opening one
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '-' && i + 1 < name.size() && name[i + 1] == '>') {
      ++i;
      continue;
    }
    const char open = name[i] == '>' ? '<' : name[i] == ')' ? '(' : '\0';
    if (open == '\0') {
      kept += name[i];
    } else {
      const size_t at = kept.rfind(open);
      kept.resize(at == std::string::npos ? 0 : at);
    }
  }
  const size_t space = kept.rfind(' ');
  return space == std::string::npos ? kept : kept.substr(space + 1);
}

std::string_view memory_kernel_label(std::string_view name) {
  if (name.starts_with("Memset")) return "Memset";
  if (name.starts_with("Memcpy")) return name.substr(0, 11);
  return "Memcpy Unknown";
}

int dtype_bytes(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, int>, 18> kSizes = {{{"Float", 4},
                                                                               {"BFloat16", 2},
                                                                               {"Half", 2},
                                                                               {"Double", 8},
                                                                               {"Long", 8},
                                                                               {"Int", 4},
                                                                               {"Short", 2},
                                                                               {"Byte", 1},
                                                                               {"Char", 1},
                                                                               {"Bool", 1},
                                                                               {"UInt16", 2},
                                                                               {"UInt32", 4},
                                                                               {"UInt64", 8},
                                                                               {"ComplexHalf", 4},
                                                                               {"ComplexFloat", 8},
                                                                               {"ComplexDouble", 16},
                                                                               {"Float8_e4m3fn", 1},
                                                                               {"Float8_e5m2", 1}}};
  for (const auto& [name, size] : kSizes)
    if (name == dtype) return size;
  return dtype.starts_with("Float8") ? 1 : 0;
}

}  // namespace stageline
