// Names for the texts and numbers of an export: calls, copies, and the range texts of frameworks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stageline::nsys {

// Returns the function: "cudaLaunchKernel_v7000", "cudaMemcpyAsync_ptsz" → "cudaLaunchKernel", "cudaMemcpyAsync".
std::string_view api_name(std::string_view name);

// Return the names of the numbers of ENUM_CUDA_MEM_KIND, ENUM_CUDA_MEMCPY_OPER and syncType.
const char* memory_kind(int64_t kind);
const char* copy_kind(int64_t kind);
const char* sync_name(int64_t type);

// torch's emit_nvtx: "aten::mul, seq = 46174, op_id = 993406, sizes = [[8], []]".
struct TorchRange {
  std::string_view name, sizes;
  int64_t sequence = -1;
  bool is_operator = false;
};
TorchRange torch_range(std::string_view text);

// Returns the number of a step of a training loop: "iteration 12", "Step 3", "train_step". `counted` is set if the name
// has no number; then its position among names with the same wording is its number.
std::optional<int64_t> step_of(std::string_view name, bool* counted);

}  // namespace stageline::nsys
