#include "profile/device_peaks.h"

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
#undef PEAKS
};

bool names(std::string_view device, std::string_view model) {
  const size_t at = device.find(model);
  if (at == std::string_view::npos || (at > 0 && device[at - 1] != ' ')) return false;
  const size_t end = at + model.size();
  if (end == device.size()) return true;
  const size_t size = device.find_first_not_of("0123456789", end + 1);  // a virtual part is named "A10-4Q"
  return device[end] == '-' && size > end + 1 && size != std::string_view::npos && device.substr(size) == "GB";
}

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
  if (type == "double") return Precision::kFp64;
  if (type == "float") return on_tensor_cores ? Precision::kTf32 : Precision::kFp32;
  if (type == "c10::Half") return Precision::kFp16;
  if (type == "c10::BFloat16") return Precision::kBf16;
  if (type == "signed char") return Precision::kInt8;
  if (type.starts_with("c10::Float8")) return Precision::kFp8;
  if (type.starts_with("c10::Float4")) return Precision::kFp4;
  return std::nullopt;
}

}  // namespace stageline
