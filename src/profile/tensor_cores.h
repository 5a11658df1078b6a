// Which kernels run on tensor cores (NVIDIA) or matrix cores (AMD), and which operators could, by their names.
//
// A trace does not say it; names are all there is. Two answers: that of TensorBoard's profiler plugin, whose list
// ends with Ampere, and ours. Definitions and limits: docs/analyses/tb-kernel.md.
#pragma once

#include <string_view>

namespace stageline {

// Ours: names of cuBLAS, cuDNN, CUTLASS, FlashAttention, Hopper's and Blackwell's instructions, Tensile with matrix
// instructions, Composable Kernel. Kernels that name nothing (Triton's) are not known. O(length).
bool uses_tensor_cores(std::string_view kernel);
// The plugin's (torch_tb_profiler 0.4.3, from NVIDIA's PyProf): one of 18 parts anywhere in the name.
bool plugin_uses_tensor_cores(std::string_view kernel);

// Operators whose kernels can use them with the right types and sizes. Ours: what multiplies matrices, today's
// backward names, attention. Callers of such operators are not named here: analyses look at what is called.
bool may_use_tensor_cores(std::string_view op);
bool plugin_may_use_tensor_cores(std::string_view op);

}  // namespace stageline
