#include "profile/tensor_cores.h"

#include <algorithm>
#include <array>

namespace stageline {
namespace {

template <size_t N>
bool holds_any(std::string_view text, const std::array<std::string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}
template <size_t N>
bool is_any(std::string_view text, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

constexpr std::array<std::string_view, 18> kPluginParts = {"h884",
                                                           "s884",
                                                           "h1688",
                                                           "s1688",
                                                           "hmma",
                                                           "i8816",
                                                           "16816",
                                                           "dgrad_1x1_stride_2x2",
                                                           "first_layer_wgrad_kernel",
                                                           "conv1x1",
                                                           "conv2d_c1_k1",
                                                           "direct_group",
                                                           "xmma_implicit_gemm",
                                                           "xmma_sparse_conv",
                                                           "xmma_warp_specialized_implicit_gemm",
                                                           "xmma_gemm",
                                                           "xmma_sparse_gemm",
                                                           "c1688"};

// What newer libraries write into the names of kernels that use these units.
constexpr std::array<std::string_view, 37> kParts = {
    "wgmma",
    "gmma_",
    "tcgen05",
    "utcmma",
    "imma",
    "bmma",
    "qmma",
    "dmma",  // instructions
    "xmma_",
    "nvjet",
    "tensorop",
    "16832",
    "16864",
    "161616",
    "16x8x16",
    "cutlass_75_",
    "cutlass_80_tensor",
    "sm80_xmma",
    "sm90_xmma",
    "sm100_xmma",
    "cutlass3x_sm90",
    "cutlass3x_sm100",
    "flash_fwd",
    "flash_bwd",
    "flash::",
    "FlashAttnFwd",
    "FlashAttnBwd",
    "fmha_v2",
    "sdpa_sm",
    "native_sdpa",
    "deep_gemm",
    "fp8_gemm",  // attention and 8-bit products
    "mfma",
    "wmma",
    "_xdl",
    "ck_tile::FmhaFwd",
    "ck_tile::FmhaBwd"  // AMD
};
// CUTLASS 3 writes the architecture as a type.
constexpr std::array<std::string_view, 4> kArchitectures = {"cutlass::arch::Sm90", "cutlass::arch::Sm100",
                                                            "cutlass::arch::OpClassTensorOp", "MainloopSm"};

constexpr std::array<std::string_view, 41> kPluginOperators = {"aten::_convolution",
                                                               "aten::_convolution_nogroup",
                                                               "aten::conv1d",
                                                               "aten::conv2d",
                                                               "aten::conv3d",
                                                               "aten::conv_tbc",
                                                               "aten::conv_transpose1d",
                                                               "aten::conv_transpose2d",
                                                               "aten::conv_transpose3d",
                                                               "aten::convolution",
                                                               "aten::cudnn_convolution",
                                                               "aten::cudnn_convolution_transpose",
                                                               "aten::prelu",
                                                               "aten::addmm",
                                                               "aten::addmv",
                                                               "aten::addr",
                                                               "aten::matmul",
                                                               "aten::mm",
                                                               "aten::mv",
                                                               "aten::linear",
                                                               "aten::addbmm",
                                                               "aten::baddbmm",
                                                               "aten::bmm",
                                                               "aten::chain_matmul",
                                                               "aten::linalg_multi_dot",
                                                               "aten::_thnn_fused_lstm_cell",
                                                               "aten::_thnn_fused_gru_cell",
                                                               "aten::lstm_cell",
                                                               "aten::gru_cell",
                                                               "aten::rnn_tanh_cell",
                                                               "aten::rnn_relu_cell",
                                                               "CudnnConvolutionBackward",
                                                               "BmmBackward0",
                                                               "aten::cudnn_convolution_transpose_backward",
                                                               "CudnnConvolutionTransposeBackward",
                                                               "MmBackward",
                                                               "aten::cudnn_convolution_backward_weight",
                                                               "aten::addmm_",
                                                               "AddmvBackward",
                                                               "MvBackward",
                                                               "aten::cudnn_convolution_transpose_backward_weight"};
constexpr std::array<std::string_view, 5> kPluginOperatorsToo = {
    "aten::cudnn_convolution_transpose_backward_input", "AddmmBackward", "aten::cudnn_convolution_backward_input",
    "AddbmmBackward", "aten::cudnn_convolution_backward"};

// These are on the plugin's list, but not computed by these units: they work element by element or with a vector.
constexpr std::array<std::string_view, 6> kNoProducts = {"aten::prelu", "aten::addr",    "aten::addmv",
                                                         "aten::mv",    "AddmvBackward", "MvBackward"};
constexpr std::array<std::string_view, 22> kMoreOperators = {"aten::convolution_backward",
                                                             "ConvolutionBackward0",
                                                             "aten::miopen_convolution",
                                                             "aten::miopen_depthwise_convolution",
                                                             "aten::_cudnn_rnn",
                                                             "aten::_cudnn_rnn_backward",
                                                             "aten::miopen_rnn",
                                                             "aten::mm.out",
                                                             "MmBackward0",
                                                             "AddmmBackward0",
                                                             "BaddbmmBackward0",
                                                             "aten::_addmm_activation",
                                                             "aten::_int_mm",
                                                             "aten::_scaled_mm",
                                                             "aten::_grouped_mm",
                                                             "aten::_scaled_grouped_mm",
                                                             "aten::_sparse_semi_structured_mm",
                                                             "aten::_sparse_semi_structured_linear",
                                                             "aten::scaled_dot_product_attention",
                                                             "aten::_flash_attention_forward",
                                                             "aten::_flash_attention_backward",
                                                             "aten::_efficient_attention_forward"};

}  // namespace

bool plugin_uses_tensor_cores(std::string_view kernel) { return holds_any(kernel, kPluginParts); }

bool uses_tensor_cores(std::string_view kernel) {
  if (holds_any(kernel, kPluginParts) || holds_any(kernel, kParts) || holds_any(kernel, kArchitectures)) return true;
  // Tensile names the matrix instruction it uses, …_MT128x128x32_MI16x16x16_… or in older versions …_MI16x16x…; a
  // kernel without one multiplies on the vector units.
  const size_t tensile = kernel.find("Cijk_");
  if (tensile == std::string_view::npos)
    return kernel.starts_with("ck_") || kernel.find("Xdl") != std::string_view::npos;
  const size_t instruction = kernel.find("_MI", tensile);
  return instruction != std::string_view::npos && instruction + 3 < kernel.size() && kernel[instruction + 3] >= '1' &&
         kernel[instruction + 3] <= '9';
}

bool plugin_may_use_tensor_cores(std::string_view op) {
  return is_any(op, kPluginOperators) || is_any(op, kPluginOperatorsToo);
}

bool may_use_tensor_cores(std::string_view op) {
  if (is_any(op, kNoProducts)) return false;
  return plugin_may_use_tensor_cores(op) || is_any(op, kMoreOperators) ||
         op.starts_with("aten::_scaled_dot_product_") || op.starts_with("flash_attn::") ||
         op == "aten::_efficient_attention_backward" || op.starts_with("_flash_attn_");
}

}  // namespace stageline
