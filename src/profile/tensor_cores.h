// Finds by names which kernels run on tensor cores (NVIDIA) or matrix cores (AMD), and which operators could.
//
// A trace does not say this, so names are all there is. Definitions and limits: docs/analyses/tb-kernel.md.
#pragma once

#include <string_view>

namespace stageline {

// Knows names of cuBLAS, cuDNN, CUTLASS, FlashAttention, of Hopper's and Blackwell's instructions, of
// Tensile with matrix instructions, and of Composable Kernel. Kernels whose names say nothing (Triton's) are not
// recognised. O(length).
bool uses_tensor_cores(std::string_view kernel);

// Returns true for names that say nothing of these units: a plain identifier, as Triton, AOTriton and hand-written
// kernels have ("attn_fwd.kd", "matmul_kernel", "triton_tem_fused_mm_0"). Libraries of matrix products write theirs
// into the name
// ("volta_sgemm_128x64_nn"), and Inductor says where a kernel only works point by point or reduces.
bool says_no_units(std::string_view kernel);

// True for operators whose kernels can use these cores with the right types and sizes. They multiply
// matrices; the list has today's names of backward operators, and attention. Callers of such operators are not on the
// list, since analyses look at what is called.
bool may_use_tensor_cores(std::string_view op);

}  // namespace stageline
