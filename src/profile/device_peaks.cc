#include "profile/device_peaks.h"

#include <array>

namespace stageline {
namespace {

struct Known {
  std::string_view model;  // the name's end, or followed by '-' (a size of memory)
  DevicePeaks peaks;       // FP64, FP32, TF32, FP16, BF16; GB/s
};

// Sources are NVIDIA's data sheets of V100, A100, H100, H200, L4, L40S and A10, where numbers with sparsity are halved.
// B200 is that of HGX B200, whose earlier edition said 8 TB/s. AMD's data sheets give MI250X, divided by two, and
// MI300X. FP64 and FP32 are the higher of vector and matrix rates.
constexpr std::array<Known, 17> kKnown = {{
    {"V100-SXM2", {{7.8, 15.7, 0, 125, 0}, 900}},
    {"V100-PCIE", {{7, 14, 0, 112, 0}, 900}},
    {"A100-SXM4-40GB", {{19.5, 19.5, 156, 312, 312}, 1555}},
    {"A100-PCIE-40GB", {{19.5, 19.5, 156, 312, 312}, 1555}},
    {"A100-SXM4-80GB", {{19.5, 19.5, 156, 312, 312}, 2039}},
    {"A100 80GB PCIe", {{19.5, 19.5, 156, 312, 312}, 1935}},
    {"H100 80GB HBM3", {{66.9, 66.9, 494.7, 989.4, 989.4}, 3350}},
    {"H100 PCIe", {{51, 51, 378, 756, 756}, 2000}},
    {"H100 NVL", {{60, 60, 417.5, 835.5, 835.5}, 3900}},
    {"H200", {{67, 67, 494.5, 989.5, 989.5}, 4800}},
    {"H200 NVL", {{60, 60, 417.5, 835.5, 835.5}, 4800}},
    {"B200", {{37, 75, 1100, 2250, 2250}, 7700}},
    {"L4", {{0, 30.3, 60, 121, 121}, 300}},
    {"L40S", {{0, 91.6, 183, 362, 362}, 864}},
    {"A10", {{0, 31.2, 62.5, 125, 125}, 600}},
    {"MI250X", {{47.9, 47.9, 0, 191.5, 191.5}, 1638.4}},
    {"MI300X", {{163.4, 163.4, 653.7, 1307.4, 1307.4}, 5300}},
}};

bool names(std::string_view device, std::string_view model) {
  const size_t at = device.find(model);
  if (at == std::string_view::npos || (at > 0 && device[at - 1] != ' ')) return false;
  const size_t end = at + model.size();
  return end == device.size() || device[end] == '-';
}

}  // namespace

std::string_view precision_name(Precision precision) {
  constexpr ByEnum<Precision, std::string_view, kPrecisionCount> kNames = {{"FP64", "FP32", "TF32", "FP16", "BF16"}};
  return kNames[precision];
}

std::optional<DevicePeaks> published_peaks(std::string_view name) {
  for (const Known& known : kKnown)
    if (names(name, known.model)) return known.peaks;
  return std::nullopt;
}

}  // namespace stageline
