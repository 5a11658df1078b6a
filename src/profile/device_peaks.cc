#include "profile/device_peaks.h"

#include "base/name_pattern.h"

namespace stageline {
namespace {

struct Known {
  std::string_view model;
  DevicePeaks peaks;
};
constexpr Known kKnown[] = {
#define PEAKS(model, fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4, memory, source) \
  {model, {{fp64, fp32, tf32, fp16, bf16, fp8, int8, fp4}, memory, source}},
#include "profile/device_peaks.def"
};

bool names(std::string_view device, std::string_view model) {
  const size_t at = device.find(model);
  if (at == std::string_view::npos || (at > 0 && device[at - 1] != ' ')) return false;
  const size_t end = at + model.size();
  if (end == device.size()) return true;
  const size_t size = device.find_first_not_of("0123456789", end + 1);  // a virtual part is named "A10-4Q"
  return device[end] == '-' && size > end + 1 && size != std::string_view::npos && device.substr(size) == "GB";
}

constexpr std::string_view kParts[] = {
#include "profile/tensor_kernels.def"
};

constexpr std::string_view kOperators[] = {
#include "profile/tensor_operators.def"
};

}  // namespace

std::string_view precision_name(Precision precision) {
  constexpr ByEnum<Precision, std::string_view, kPrecisionCount> kNames = {
      {"FP64", "FP32", "TF32", "FP16", "BF16", "FP8", "INT8", "FP4"}};
  return kNames[precision];
}

std::optional<DevicePeaks> published_peaks(std::string_view name) {
  if (name.find('/') != std::string_view::npos) return std::nullopt;  // two products at once
  for (const Known& known : kKnown)
    if (names(name, known.model)) return known.peaks;
  return std::nullopt;
}

std::optional<Precision> precision_of(std::string_view type, bool on_tensor_cores) {
  if (type.starts_with("DT_")) type.remove_prefix(3);
#define PRECISION(name, precision) \
  if (type == name) return Precision::precision;
#include "profile/precisions.def"
  if (type == "float") return on_tensor_cores ? Precision::kTf32 : Precision::kFp32;
  if (type.starts_with("c10::Float8")) return Precision::kFp8;
  if (type.starts_with("c10::Float4")) return Precision::kFp4;
  return std::nullopt;
}

bool uses_tensor_cores(std::string_view kernel) {
  static const AnyOf units({std::begin(kParts), std::end(kParts)});
  if (units.in(kernel)) return true;
  // Tensile names the matrix instruction it uses, …_MT128x128x32_MI16x16x16_… or in older versions …_MI16x16x…; a
  // kernel without one multiplies on the vector units.
  const size_t tensile = kernel.find("Cijk_");
  if (tensile == std::string_view::npos)
    return kernel.starts_with("ck_") || kernel.find("Xdl") != std::string_view::npos;
  const size_t instruction = kernel.find("_MI", tensile);
  return instruction != std::string_view::npos && instruction + 3 < kernel.size() && kernel[instruction + 3] >= '1' &&
         kernel[instruction + 3] <= '9';
}

bool says_no_units(std::string_view kernel) {
  const bool identifier = !kernel.empty() && std::ranges::all_of(kernel, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
  static const AnyOf speaking({"sgemm",  "dgemm",       "cgemm",       "zgemm",      "gemv",   "simt",
                               "Cijk_",  "cublas",      "cudnn",       "miopen",     "ampere", "volta",
                               "turing", "maxwell",     "pascal",      "hopper",     "sm80_",  "sm90_",
                               "nccl",   "triton_poi_", "triton_red_", "triton_per_"});
  return identifier && !uses_tensor_cores(kernel) && !speaking.in(kernel);
}

bool may_use_tensor_cores(std::string_view op) {
  return std::find(std::begin(kOperators), std::end(kOperators), op) != std::end(kOperators) ||
         op.starts_with("aten::_scaled_dot_product_") || op.starts_with("flash_attn::") ||
         op == "aten::_efficient_attention_backward" || op.starts_with("_flash_attn_");
}

}  // namespace stageline
