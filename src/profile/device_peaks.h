// Published peak rates of devices, by the name that the driver gives them. Vendors' numbers are for full clocks and,
// here, for dense matrices; a device that is held back by power or heat has lower ones.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

enum class Precision : uint8_t { kFp64, kFp32, kTf32, kFp16, kBf16, kFp8, kInt8, kFp4 };
inline constexpr int kPrecisionCount = 8;
std::string_view precision_name(Precision precision);  // "BF16"

// The rates of one device number: for MI250X that is one of the two dies. 0 means that the vendor publishes none.
struct DevicePeaks {
  // 10¹² operations a second, on tensor or matrix units if they do it.
  ByEnum<Precision, double, kPrecisionCount> tflops = {};
  double gbps = 0;          // 10⁹ bytes a second, of the device's memory
  std::string_view source;  // "data sheet", or who publishes them
};

// Returns none for names that are not in the table: a part of a device (MIG) has another name and other rates.
// `name`: "NVIDIA H100 80GB HBM3".
std::optional<DevicePeaks> published_peaks(std::string_view name);

// The precision of arithmetic on elements of a type as torch names it, "c10::BFloat16", or Ascend, "DT_BF16"; none for
// other types. On tensor cores, matrices of FP32 are multiplied in TF32.
std::optional<Precision> precision_of(std::string_view type, bool on_tensor_cores);

// Finds by names which kernels run on tensor cores (NVIDIA) or matrix cores (AMD), and which operators could.
//
// A trace does not say this, so names are all there is. Definitions and limits: docs/analyses/tb-kernel.md. Knows names
// of cuBLAS, cuDNN, CUTLASS, FlashAttention, of Hopper's and Blackwell's instructions, of Tensile with matrix
// instructions, and of Composable Kernel. Kernels whose names say nothing (Triton's) are not recognised. O(length).
bool uses_tensor_cores(std::string_view kernel);

// Returns true for names that say nothing of these units: a plain identifier, as Triton, AOTriton and hand-written
// kernels have ("attn_fwd.kd", "matmul_kernel", "triton_tem_fused_mm_0"). Libraries of matrix products write theirs
// into the name ("volta_sgemm_128x64_nn"), and Inductor says where a kernel only works point by point or reduces.
bool says_no_units(std::string_view kernel);

// True for operators whose kernels can use these cores with the right types and sizes. They multiply
// matrices; the list has today's names of backward operators, and attention. Callers of such operators are not on the
// list, since analyses look at what is called.
bool may_use_tensor_cores(std::string_view op);

}  // namespace stageline
