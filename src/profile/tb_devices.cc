#include "profile/tb_devices.h"

#include <map>

#include "base/json_members.h"
#include "base/number.h"
#include "model/statistics.h"
#include "model/torch_facts.h"

namespace stageline {
namespace {

struct Kernel {
  int64_t start_ns = 0, end_ns = 0;
  double blocks_per_sm = -1, occupancy_percent = -1;
  bool tensor_cores = false;
};

// Returns Σ over time of min(1, Σ blocks per SM of the running kernels), in ns.
double filled_ns(const std::vector<Kernel>& kernels, int64_t from, int64_t to) {
  struct Border {
    int64_t at;
    double change;
  };
  std::vector<Border> borders;
  for (const Kernel& k : kernels) {
    const int64_t start = std::max(k.start_ns, from), end = std::min(k.end_ns, to);
    if (k.blocks_per_sm <= 0 || !std::isfinite(k.blocks_per_sm) || start >= end) continue;
    borders.push_back({start, k.blocks_per_sm});
    borders.push_back({end, -k.blocks_per_sm});
  }
  std::ranges::stable_sort(borders, {}, &Border::at);
  double sum = 0, blocks = 0;
  int64_t running = 0;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    running += borders[i].change > 0 ? 1 : -1;
    blocks = running > 0 ? blocks + borders[i].change : 0;  // no rounding error remains while no kernel runs
    if (running > 0) sum += std::min(blocks, 1.0) * (borders[i + 1].at - borders[i].at);
  }
  return sum;
}

void measure(const std::vector<Kernel>& kernels, int64_t from, int64_t to, TbDevice& device) {
  std::vector<Interval> busy;
  double time = 0, tensor_time = 0, occupied = 0, occupied_time = 0;
  bool says_blocks = false;
  for (const Kernel& k : kernels) {
    says_blocks |= k.blocks_per_sm > 0;
    const int64_t start = std::max(k.start_ns, from), end = std::min(k.end_ns, to);
    if (start >= end) continue;
    const double length = end - start;
    busy.push_back({start, end});
    time += length;
    if (k.tensor_cores) tensor_time += length;
    if (k.occupancy_percent >= 0 && std::isfinite(k.occupancy_percent)) {
      occupied += k.occupancy_percent / 100 * length;
      occupied_time += length;
    }
  }
  const double window = to - from;
  device.utilization = share_of(length_of(union_of(std::move(busy))), window);
  if (says_blocks) device.sm_efficiency = share_of(filled_ns(kernels, from, to), window);
  device.occupancy = share_of(occupied, occupied_time);
  device.tensor_cores = share_of(tensor_time, time);
}

// Returns the texts of deviceProperties by the device number they name, or else by their position.
std::map<int64_t, std::string_view> device_texts(const Part& part) {
  std::map<int64_t, std::string_view> texts;
  int64_t place = 0;
  for (const JsonMember& one : json_members(meta_json(part, "deviceProperties"), 4096)) {
    texts.try_emplace(json_integer(json_member(one.value, "id")).value_or(place), one.value);
    ++place;
  }
  return texts;
}

void describe_device(std::string_view text, TbDevice& device) {
  device.name = json_text(json_member(text, "name"));
  device.memory_bytes = parse_double(json_text(json_member(text, "totalGlobalMem"))).value_or(NAN);
  device.compute_major = json_integer(json_member(text, "computeMajor")).value_or(-1);
  device.compute_minor = json_integer(json_member(text, "computeMinor")).value_or(-1);
}

}  // namespace

std::vector<TbDevice> tb_devices(const TbRun& run, const TbRank& rank) {
  const Part& part = *rank.rank.part;
  std::map<int64_t, std::vector<Kernel>> kernels;  // only a few devices
  for (const TorchRow& row : rank.rank.rows) {
    if (!run.is_kernel(rank.rank, row) || row.kernel == KernelClass::kOther) continue;
    Kernel k = {.start_ns = row.start_ns, .end_ns = row.end_ns()};
    k.tensor_cores = run.is(row.name, TbRun::kTensorCore);
    if (const KernelFact* fact = fact_of(part.kernels, row.slice)) {
      k.blocks_per_sm = decimal_of(fact->blocks_per_sm);
      k.occupancy_percent = decimal_of(fact->occupancy_percent);
    }
    kernels[parse_int(part.lanes[row.lane].pid).value_or(-1)].push_back(k);
  }
  const std::map<int64_t, std::string_view> texts = device_texts(part);
  std::vector<TbDevice> devices;
  for (const auto& [number, list] : kernels) {
    TbDevice device;
    device.number = number;
    device.kernel_count = list.size();
    if (const auto text = texts.find(number); text != texts.end()) describe_device(text->second, device);
    // Lanes may number devices in another way than deviceProperties does. When all devices are alike, the name is known
    // nevertheless.
    if (device.name.empty()) device.name = device_name(part);
    if (!rank.steps.empty()) measure(list, rank.steps.front().start_ns, rank.steps.back().end_ns, device);
    // Names of NPU kernels do not show whether the cube unit was used: that is unknown, which is not the same as zero.
    if (run.torch.trace->device_family == DeviceFamily::kNpu) device.tensor_cores = NAN;
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace stageline
