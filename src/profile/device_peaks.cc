#include "profile/device_peaks.h"

#include <array>

namespace stageline {
namespace {

struct Known {
  std::string_view model;  // the name's end, or followed by a size of memory, "-80GB"
  DevicePeaks peaks;       // FP64, FP32, TF32, FP16, BF16, FP8, INT8, FP4; GB/s
};

// Rates are of dense matrices; numbers that a data sheet gives with sparsity are halved. FP64 and FP32 are the higher
// of vector and matrix rates. GeForce boards sum in FP32. MI250, MI250X and Ascend 910C are one of two dies. Sheets
// marked "unchecked" are from memory.
constexpr std::array<Known, 57> kKnown = {{
    {"V100-SXM2", {{7.8, 15.7, 0, 125, 0, 0, 0, 0}, 900, "data sheet"}},
    {"V100-PCIE", {{7, 14, 0, 112, 0, 0, 0, 0}, 900, "data sheet"}},
    {"V100S-PCIE", {{8.2, 16.4, 0, 130, 0, 0, 0, 0}, 1134, "Lightning-AI/lightning@0810121"}},
    {"T4", {{0, 8.1, 0, 65, 0, 0, 130, 0}, 320, "Lightning-AI/lightning@0810121"}},
    {"Quadro RTX 5000", {{0, 11.2, 0, 89.2, 0, 0, 178.4, 0}, 448, "Lightning-AI/lightning@0810121"}},
    {"A100-SXM4-40GB", {{19.5, 19.5, 156, 312, 312, 0, 624, 0}, 1555, "data sheet"}},
    {"A100-SXM4-80GB", {{19.5, 19.5, 156, 312, 312, 0, 624, 0}, 2039, "data sheet"}},
    {"A100-PCIE-40GB", {{19.5, 19.5, 156, 312, 312, 0, 624, 0}, 1555, "data sheet"}},
    {"A100 80GB PCIe", {{19.5, 19.5, 156, 312, 312, 0, 624, 0}, 1935, "data sheet"}},
    {"A800-SXM4-80GB", {{9.7, 19.5, 156, 312, 312, 0, 624, 0}, 2039, "volcengine/verl@1dda039"}},
    {"A30", {{10.3, 10.3, 82, 165, 165, 0, 330, 0}, 933, "data sheet, unchecked"}},
    {"A10", {{0, 31.2, 62.5, 125, 125, 0, 250, 0}, 600, "data sheet"}},
    {"A40", {{0, 37.4, 74.8, 149.7, 149.7, 0, 299.3, 0}, 696, "volcengine/verl@1dda039"}},
    {"RTX A6000", {{0, 38.7, 77.4, 154.85, 154.85, 0, 309.7, 0}, 768, "pytorch/torchtitan@b5bcd76"}},
    {"L4", {{0, 30.3, 60, 121, 121, 242.5, 242.5, 0}, 300, "data sheet"}},
    {"L20", {{0, 59.8, 59.8, 119.5, 119.5, 239, 239, 0}, 864, "volcengine/verl@1dda039"}},
    {"L40", {{0, 90.5, 90.5, 181.05, 181.05, 362, 362, 0}, 864, "volcengine/verl@1dda039"}},
    {"L40S", {{0, 91.6, 183, 362, 362, 733, 733, 0}, 864, "data sheet"}},
    {"RTX 3090", {{0, 35.6, 35.6, 71, 71, 0, 284, 0}, 936, "data sheet, unchecked"}},
    {"RTX 4090", {{0, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6, 0}, 1008, "data sheet, unchecked"}},
    {"RTX 5090", {{0, 104.8, 104.8, 209.5, 209.5, 419, 838, 1676}, 1792, "data sheet, unchecked"}},
    {"RTX 6000 Ada", {{0, 91.1, 182.1, 364.2, 364.2, 728.5, 728.5, 0}, 960, "data sheet, unchecked"}},
    {"RTX PRO 6000 Blackwell",
     {{0, 125, 0, 503.8, 503.8, 1007.6, 1007.6, 2015.2}, 1792, "NVIDIA-NeMo/Automodel@36044ad"}},
    {"RTX PRO 6000 Blackwell Max-Q",
     {{0, 110, 0, 438.9, 438.9, 877.8, 877.8, 1755.6}, 1792, "NVIDIA-NeMo/Automodel@36044ad"}},
    {"H100 80GB HBM3", {{66.9, 66.9, 494.7, 989.4, 989.4, 1978.9, 1978.9, 0}, 3350, "data sheet"}},
    {"H100 PCIe", {{51, 51, 378, 756, 756, 1513, 1513, 0}, 2000, "data sheet"}},
    {"H100 NVL", {{60, 60, 417.5, 835.5, 835.5, 1671, 1671, 0}, 3900, "data sheet"}},
    {"H800", {{1, 66.9, 494.7, 989.4, 989.4, 1978.9, 1978.9, 0}, 3350, "data sheet, unchecked"}},
    {"H20", {{1, 44, 74, 148, 148, 296, 296, 0}, 4000, "volcengine/verl@1dda039"}},
    {"H200", {{67, 67, 494.5, 989.5, 989.5, 1979, 1979, 0}, 4800, "data sheet"}},
    {"H200 NVL", {{60, 60, 417.5, 835.5, 835.5, 1671, 1671, 0}, 4800, "data sheet"}},
    {"GH200", {{67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 0}, 4000, "data sheet, unchecked"}},
    {"B200", {{37, 75, 1125, 2250, 2250, 4500, 4500, 9000}, 7700, "stas00/ml-engineering@744d01e"}},
    {"GB200", {{40, 80, 1250, 2500, 2500, 5000, 5000, 10000}, 8000, "stas00/ml-engineering@744d01e"}},
    {"B300", {{1.2, 75, 1125, 2250, 2250, 4500, 0, 0}, 8000, "stas00/ml-engineering@744d01e"}},
    {"GB300", {{1.3, 80, 1250, 2500, 2500, 5000, 0, 15000}, 8000, "stas00/ml-engineering@744d01e"}},
    {"MI100", {{11.5, 46.1, 0, 184.6, 92.3, 0, 184.6, 0}, 1229, "data sheet, unchecked"}},
    {"MI210", {{45.3, 45.3, 0, 181, 181, 0, 181, 0}, 1638.4, "data sheet, unchecked"}},
    {"MI250", {{45.3, 45.3, 0, 181, 181, 0, 181, 0}, 1638.4, "stas00/ml-engineering@744d01e"}},
    {"MI250X", {{47.9, 47.9, 0, 191.5, 191.5, 0, 191.5, 0}, 1638.4, "data sheet"}},
    {"MI300A", {{122.6, 122.6, 490.3, 980.6, 980.6, 1961.2, 1961.2, 0}, 5300, "data sheet, unchecked"}},
    {"MI300X", {{163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, 0}, 5300, "data sheet"}},
    {"MI325X", {{163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, 0}, 6000, "stas00/ml-engineering@744d01e"}},
    {"MI350X", {{72, 144.2, 0, 2306.9, 2306.9, 4614, 4614, 9228}, 8000, "volcengine/verl@1dda039"}},
    {"MI355X", {{78.6, 157.3, 0, 2516.6, 2516.6, 5033, 5033, 10066}, 8000, "stas00/ml-engineering@744d01e"}},
    {"Ascend910A", {{0, 0, 0, 256, 0, 0, 512, 0}, 1200, "data sheet, unchecked"}},
    {"Ascend910B2", {{0, 0, 0, 353.9, 353.9, 0, 707.8, 0}, 1600, "volcengine/verl@1dda039"}},
    {"Ascend910_93", {{0, 0, 0, 376, 376, 0, 752, 0}, 1600, "arXiv 2506.12708"}},
    {"Ascend950", {{0, 0, 0, 432, 432, 0, 0, 0}, 0, "volcengine/verl@1dda039"}},
    {"TPU v4", {{0, 0, 0, 0, 275, 0, 275, 0}, 1228, "stas00/ml-engineering@744d01e"}},
    {"TPU v5 lite", {{0, 0, 0, 0, 197, 0, 394, 0}, 819, "stas00/ml-engineering@744d01e"}},
    {"TPU v5p", {{0, 0, 0, 0, 459, 0, 918, 0}, 2765, "stas00/ml-engineering@744d01e"}},
    {"TPU v6 lite", {{0, 0, 0, 0, 918, 0, 1836, 0}, 1640, "stas00/ml-engineering@744d01e"}},
    {"Gaudi2", {{0, 0, 0, 0, 432, 865, 0, 0}, 2450, "stas00/ml-engineering@744d01e"}},
    {"Gaudi3", {{0, 0, 0, 0, 1677, 1677, 0, 0}, 3700, "stas00/ml-engineering@744d01e"}},
    {"Max 1550", {{26, 26, 209.5, 419.5, 419.5, 0, 839, 0}, 1638, "data sheet, unchecked"}},
    {"Trainium2", {{0, 0, 0, 0, 667, 1299, 0, 0}, 2900, "stas00/ml-engineering@744d01e"}},
}};

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
