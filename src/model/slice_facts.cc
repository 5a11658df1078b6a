#include "model/slice_facts.h"

namespace stageline {
namespace {

bool any_of_prefixes(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view p) { return text.starts_with(p); });
}
template <class Words = std::initializer_list<std::string_view>>
bool contains_any(std::string_view text, const Words& words) {
  return std::ranges::any_of(words, [&](std::string_view w) { return text.find(w) != std::string_view::npos; });
}

}  // namespace

Category category_of(std::string_view text) {
  static constexpr WordRow<Category> kKnown[] = {
#define CATEGORY(category, words) {Category::category, words},
#include "model/categories.def"
  };
  return key_of_word(kKnown, text).value_or(Category::kOther);
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
  static constexpr std::string_view kCommunication[] = {
#include "model/communication_kernels.def"
  };
  if (contains_any(name, kCommunication) || any_of_prefixes(name, {"nccl", "hccl"})) return KernelClass::kCommunication;
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
  static constexpr WordRow<int> kSizes[] = {
      {4, "Float Int UInt32 ComplexHalf INT32 UINT32 FP32"},
      {2, "BFloat16 Half Short UInt16 INT16 UINT16 FP16 BFP16 BF16"},
      {8, "Double Long UInt64 ComplexFloat INT64 UINT64 FP64"},
      {1, "Byte Char Bool INT8 UINT8 HIF8 FP8E4M3 FP8E5M2 FP8E8M0"},
      {16, "ComplexDouble INT128"},
  };
  return key_of_word(kSizes, dtype).value_or(dtype.starts_with("Float8") ? 1 : 0);
}

}  // namespace stageline
