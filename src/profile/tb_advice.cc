#include "profile/tb_advice.h"

#include "base/json_members.h"
#include "model/row_names.h"
#include "model/statistics.h"
#include "model/torch_facts.h"

namespace stageline {
namespace {

using Visit = std::function<void(const TbOperator&)>;

struct CallFacts {  // for each event or node, besides its own fields
  int64_t device_ns = 0, self_device_ns = 0, tensor_ns = 0, self_tensor_ns = 0, self_kernel_ns = 0;
  bool eligible = false, eligible_below = false;

  void add_work(const TorchRow& row, TbEvent event, bool tensor_cores) {
    self_device_ns += row.dur_ns;
    if (event == TbEvent::kKernel) self_kernel_ns += row.dur_ns;
    if (tensor_cores) self_tensor_ns += row.dur_ns;
  }
};

// Returns true for operators that the plugin's view listed: all but those that it showed elsewhere.
bool is_listed(std::string_view name) {
  return !name.starts_with("Optimizer.") && name != "DataParallel.forward" && name != "DistributedDataParallel.forward";
}

constexpr double kMuchLoading = 0.05, kMuchCommunication = 0.1, kLowUtilization = 0.5, kFullMemory = 0.9;
constexpr int32_t kCuda = 1, kHip = 6;  // c10 device types

// Returns the most bytes that were ever allocated on one device, and the number of that device.
std::pair<int64_t, int64_t> peak_memory(const Part& part, const std::vector<TbDevice>& devices) {
  int64_t peak = -1, at = -1;
  double fullest = 0;
  for (const MemoryRecord& record : part.memory) {
    if (record.device_type != kCuda && record.device_type != kHip) continue;
    const auto device = std::ranges::lower_bound(devices, int64_t{record.device_id}, {}, &TbDevice::number);
    if (device == devices.end() || device->number != record.device_id || !(device->memory_bytes > 0)) continue;
    const double full = record.total_allocated / device->memory_bytes;
    if (full <= fullest) continue;
    fullest = full;
    peak = record.total_allocated;
    at = device->number;
  }
  return {peak, at};
}

std::string list_of(const std::vector<int64_t>& numbers) {
  std::string out;
  for (const int64_t number : numbers) append_item(out, std::to_string(number));
  return out;
}

void advise_on_device(const TbOverview& r, std::vector<TbAdvice>& out) {
  std::vector<int64_t> idle;
  double min = 1;
  for (const TbDevice& device : r.devices)
    if (device.utilization < kLowUtilization) {
      idle.push_back(device.number);
      min = std::min(min, device.utilization);
    }
  if (!idle.empty())
    out.push_back({"low-utilization", min, words("tb.advice.utilization", Args().set("devices", list_of(idle)))});
  const bool capable = std::ranges::any_of(r.devices, [](const TbDevice& d) {
    return d.compute_major >= 7;  // Volta was the first generation with tensor cores
  });
  if (capable && r.tensor_core_share == 0 && r.eligible_share > 0)
    out.push_back({"tensor-cores", r.eligible_share,
                   words("tb.advice.tensor_cores", Args().set("share", percent(r.eligible_share)))});
  const auto [peak, at] = peak_memory(*r.part, r.devices);
  for (const TbDevice& device : r.devices) {
    if (device.number != at || !(peak > kFullMemory * device.memory_bytes)) continue;
    out.push_back({"memory-full", peak / device.memory_bytes,
                   words("tb.advice.memory", Args()
                                                 .set("device", int64_t{at})
                                                 .set("used", human_bytes(peak))
                                                 .set("size", human_bytes(device.memory_bytes)))});
  }
}

// Fills the fields on which recommendations are based.
void note_facts(const TbRun& run, const FunctionNames& function_names, const TorchRank& rank, TbOverview& out) {
  int64_t kernel_ns = 0, tensor_ns = 0;
  const StringPool& names = run.torch.trace->names;
  for (const TorchRow& row : rank.rows) {
    const TbEvent event = run.event(rank, row);
    if (event == TbEvent::kKernel) {
      kernel_ns += row.dur_ns;
      if (run.is(row.name, TbRun::kTensorCore)) tensor_ns += row.dur_ns;
      out.uses_nccl |= row.kernel == KernelClass::kCommunication;
    } else if (event == TbEvent::kOperator || event == TbEvent::kAnnotation) {
      out.uses_nccl |= run.is(row.name, TbRun::kDeviceCollective);
      const std::string_view name = names.text(row.name);
      out.data_parallel |= name == "DataParallel.forward";
      out.distributed_data_parallel |= name == "DistributedDataParallel.forward";
    }
  }
  out.tensor_core_share = share_or_zero(tensor_ns, kernel_ns);
  if (tensor_ns == 0 && kernel_ns > 0) out.eligible_share = tb_eligible_share(run, function_names, rank);
}

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
  sort_stably(borders, {}, &Border::at);
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

int64_t for_each_tb_operator(const TbRun& run, const FunctionNames& names, const TorchRank& rank, const Visit& visit) {
  const Part& part = *rank.part;
  const Slices& s = part.slices;
  const FunctionEvents tree = function_events(*run.torch.trace, part, names, {.python_frames = false});
  std::vector<CallFacts> facts(tree.events.size());
  int64_t kernel_ns = 0;
  for (const TorchRow& row : rank.rows) {
    const TbEvent event = run.event(rank, row);
    if (!is_work(event)) continue;
    if (event == TbEvent::kKernel) kernel_ns += row.dur_ns;
    const uint32_t owner = s.parent[row.slice];
    if (owner == kNoSliceIndex || tree.event_of_slice[owner] < 0) continue;
    facts[tree.event_of_slice[owner]].add_work(row, event, run.is(row.name, TbRun::kTensorCore));
  }
  const auto is_op = [&](const FunctionEvent& event) {
    return !event.on_device && event.slice != kNoSliceIndex && event.category == Category::kCpuOp;
  };
  // The name of an operator without its overload may be no name of the trace.
  const auto is = [&](const FunctionEvent& event, uint8_t fact) {
    return event.name < run.name_facts.size() ? run.is(event.name, fact)
                                              : (tb_name_facts(names.text(event.name)) & fact) != 0;
  };
  const auto is_step = [&](const FunctionEvent& event) { return run.step_number[s.name_id[event.slice]] >= 0; };
  for (size_t i = tree.events.size(); i-- > 0;) {  // callees before callers
    const FunctionEvent& e = tree.events[i];
    CallFacts& own = facts[i];
    own.device_ns += own.self_device_ns;
    own.tensor_ns += own.self_tensor_ns;
    own.eligible |= (is_op(e) && is(e, TbRun::kTensorOperator)) || own.self_tensor_ns > 0;
    if (e.parent == FunctionEvent::kNone) continue;
    CallFacts& caller = facts[e.parent];
    caller.device_ns += own.device_ns;
    caller.tensor_ns += own.tensor_ns;
    caller.eligible |= own.eligible;
    caller.eligible_below |= own.eligible || own.eligible_below;
  }
  for (size_t i = 0; i < tree.events.size(); ++i) {
    const FunctionEvent& e = tree.events[i];
    if (!is_op(e) || is(e, TbRun::kDataLoader) || is_step(e) || !is_listed(names.text(e.name))) continue;
    const CallFacts& f = facts[i];
    visit({e.name, e.slice, e.host_ns(), e.self_host_ns, f.device_ns, f.self_device_ns, f.tensor_ns, f.self_tensor_ns,
           f.self_kernel_ns, f.eligible, f.eligible && !f.eligible_below});
  }
  return kernel_ns;
}

double tb_eligible_share(const TbRun& run, const FunctionNames& names, const TorchRank& rank) {
  int64_t eligible = 0;
  const int64_t all = for_each_tb_operator(run, names, rank, [&](const TbOperator& call) {
    if (call.bottom_eligible) eligible += call.self_kernel_ns;
  });
  // Kernels whose names say nothing may be those that use the cores: what is left is known not to.
  for (const TorchRow& row : rank.rows)
    if (run.is_kernel(rank, row) && run.is(row.name, TbRun::kSilentKernel)) eligible -= row.dur_ns;
  return all > 0 ? static_cast<double>(std::max<int64_t>(eligible, 0)) / static_cast<double>(all) : 0;
}

TbOverview tb_overview(const TbRun& run, const FunctionNames& names, const TbRank& rank) {
  TbOverview out{.rank = rank.rank.rank,
                 .part = rank.rank.part,
                 .steps = rank.steps,
                 .costs = tb_costs(rank),
                 .dropped_steps = rank.dropped_steps};
  for (size_t i = 0; i < out.costs.size(); ++i) {
    out.total_ns += out.steps[i].length_ns();
    for (size_t role = 0; role < kTbRoleCount; ++role) out.sums[role] += out.costs[i][role];
  }
  out.devices = tb_devices(run, rank);
  note_facts(run, names, rank.rank, out);
  out.loader_processes = has_loader_processes(run.torch.trace->names);
  return out;
}

std::vector<TbAdvice> tb_advice(const TbOverview& r) {
  std::vector<TbAdvice> out;
  const double loading = share_or_zero(r.sums[TbRole::kDataLoader], r.total_ns);
  if (loading > kMuchLoading)
    out.push_back(
        {"input-loading", loading,
         words("tb.advice.loading", Args().set("share", percent(loading)).flag("workers", r.loader_processes))});
  if (r.data_parallel && r.devices.size() > 1) out.push_back({"data-parallel", NAN, words("tb.advice.data_parallel")});
  const bool capable = std::ranges::any_of(r.devices, [](const TbDevice& d) {
    return d.compute_major > 3 || (d.compute_major == 3 && d.compute_minor >= 5);  // NCCL needs this version
  });
  if (r.distributed_data_parallel && !r.uses_nccl && capable)
    out.push_back({"backend", NAN, words("tb.advice.backend")});
  const double communication = share_or_zero(r.sums[TbRole::kCommunication], r.total_ns);
  if (communication > kMuchCommunication)
    out.push_back({"communication", communication,
                   words("tb.advice.communication", Args().set("share", percent(communication)))});
  advise_on_device(r, out);
  return out;
}

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
    TbDevice device{.number = number, .kernel_count = std::ssize(list)};
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
