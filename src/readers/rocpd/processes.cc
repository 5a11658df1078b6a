#include "readers/rocpd/processes.h"

#include "base/json_writer.h"
#include "model/collective_kind.h"
#include "model/source_limits.h"
#include "model/statistics.h"
#include "readers/common/range_message.h"
#include "readers/rocpd/problems.h"

namespace stageline::rocpd {
namespace {

using namespace gpu_rows;

constexpr size_t kMaxProcesses = 4096;

std::string three(int64_t x, int64_t y, int64_t z) {
  return "[" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + "]";
}

Kind kind_of(std::string_view category) {
  return category.starts_with("HIP_")      ? kRuntime
         : category.starts_with("HSA_")    ? kDriver
         : category.starts_with("MARKER_") ? kAnnotation
         : category.starts_with("RCCL_")   ? kOperator
                                           : kHostCall;
}

}  // namespace

std::string copy_name(std::string_view name) {
  std::string upper;
  for (const char c : name)
    if (c != '_') upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  const auto has = [&](std::string_view word) { return upper.find(word) != std::string::npos; };
  for (const auto& [word, text] : {std::pair("HOSTTODEVICE", "Memcpy HtoD"), std::pair("DEVICETOHOST", "Memcpy DtoH"),
                                   std::pair("DEVICETODEVICE", "Memcpy DtoD"), std::pair("HOSTTOHOST", "Memcpy HtoH")})
    if (has(word)) return text;
  return std::string(name);
}

std::optional<uint64_t> parse_address(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

Processes::Process* Processes::of(int64_t id, int64_t pid) {
  const std::pair key(generation_, id);
  if (const auto at = all_.find(key); at != all_.end()) return at->second.get();
  if (all_.size() >= kMaxProcesses) return nullptr;
  Process* made = all_.emplace(key, std::make_unique<Process>(path_)).first->second.get();
  made->pid = pid;
  return made;
}

void Processes::begin_next() {
  ++generation_;
  numbers_.clear();
}

Processes::Process* Processes::last_of_these() {
  return all_.empty() || all_.rbegin()->first.first != generation_ ? nullptr : all_.rbegin()->second.get();
}

uint32_t Processes::number_of(int64_t launch) {
  if (launch == 0) return kNoCorrelation;
  const auto [at, is_new] = numbers_.try_emplace(launch, last_number_ + 1);
  if (is_new) ++last_number_;
  return at->second;
}

uint32_t Processes::add_call(Process& process, std::string_view category, int64_t thread, int64_t start, int64_t end,
                             std::string_view name, int64_t launch) {
  const Kind kind = kind_of(category);
  const bool launches = kind == kRuntime || kind == kDriver;
  const RangeText range = kind == kAnnotation ? parse_range_message(name) : RangeText{};
  const uint32_t number = launches ? number_of(launch) : kNoCorrelation;
  const uint32_t lane = process.out.host_lane(process.pid, thread);
  const uint32_t shown = process.out.text(kind == kAnnotation ? std::string_view(range.name) : name);
  const uint32_t row = process.out.add(lane, kind, start, end, shown, number);
  if (row == kNoRow) return row;
  ++process.host_rows;
  if (number != kNoCorrelation) process.launched.add_launch(thread, start, number);
  if (kind != kAnnotation) return row;
  process.launched.add_range({thread, start, end, row, 0});
  process.out.ranges.push_back({row, process.out.text(name), process.out.text("roctx"), range.micro_batch, range.chunk,
                                range.stage, range.step});
  return row;
}

uint32_t Processes::add_work(Process& process, Kind kind, int64_t device, int64_t stream, int64_t start, int64_t end,
                             std::string_view name, int64_t launch, int64_t bytes) {
  const uint32_t number = number_of(launch), lane = process.out.stream_lane(device, stream);
  const uint32_t row = process.out.add(lane, kind, start, end, process.out.text(name), number);
  if (row == kNoRow) return row;
  ++process.device_rows;
  if (kind != kSync) process.launched.add_work({lane, row, start, std::max(start, end), number});
  if (process.first_device < 0 || device < process.first_device) process.first_device = device;
  if (kind == kMemcpy && bytes >= 0) {
    const int64_t ns = between_ns(start, end);
    process.out.copies.push_back({row, bytes, share_or_zero(bytes, ns)});
  }
  return row;
}

void Processes::describe_kernel(Process& process, uint32_t row, const Shape& shape) {
  KernelFact fact;
  fact.slice = row;
  fact.registers = static_cast<int32_t>(std::clamp<int64_t>(shape.registers, -1, 65'536));
  fact.shared_bytes = static_cast<int32_t>(std::clamp<int64_t>(shape.shared_bytes, -1, INT32_MAX));
  if (shape.known) {
    int64_t group[3], blocks[3];
    for (int i = 0; i < 3; ++i) {
      group[i] = std::clamp<int64_t>(shape.group[i], 1, 1 << 20);
      const int64_t items = std::clamp<int64_t>(shape.items[i], 1, int64_t{1} << 40);
      blocks[i] = (items + group[i] - 1) / group[i];
    }
    fact.block = process.out.text(three(group[0], group[1], group[2]));
    fact.grid = process.out.text(three(blocks[0], blocks[1], blocks[2]));
  }
  process.out.kernels.push_back(fact);
}

void Processes::describe_collective(Process& process, uint32_t row, std::string_view name,
                                    std::map<std::string, std::string>& arguments) {
  if (name.starts_with("ncclCommInit")) process.communicator_sizes.insert(parse_int(arguments["nranks"]).value_or(0));
  else if (name == "ncclCommSplit")
    process.communicator_sizes.insert(0);  // the sizes of its parts are not in its arguments
  const auto count = parse_int(arguments["count"].empty() ? arguments["sendcount"] : arguments["count"]);
  if (!count || *count < 0 || !name.starts_with("nccl")) return;
  CollectiveFact fact{.slice = row, .name = process.out.text(name.substr(4))};
  const std::string& type = arguments["datatype"];
  constexpr std::pair<std::string_view, std::pair<const char*, int>> kTypes[] = {
      {"Float16", {"Half", 2}},   {"Half", {"Half", 2}},  {"Bfloat16", {"BFloat16", 2}}, {"Float32", {"Float", 4}},
      {"Float64", {"Double", 8}}, {"Int8", {"Char", 1}},  {"Uint8", {"Byte", 1}},        {"Int32", {"Int", 4}},
      {"Int64", {"Long", 8}},     {"Float", {"Float", 4}}};
  for (const auto& [spelt, known] : kTypes)
    if (type.find(spelt) != std::string::npos) {
      fact.dtype = process.out.text(known.first);
      if (*count < (int64_t{1} << 58)) fact.bytes = *count * known.second;
      break;
    }
  fact.in_elements = fact.out_elements = *count;
  if (!arguments["comm"].empty()) fact.group = process.out.text("communicator " + arguments["comm"]);
  if (const auto peer = parse_int(arguments["peer"])) fact.peer = *peer;
  process.out.collectives.push_back(fact);
}

void Processes::add_allocation(Process& process, int64_t at, int64_t address, int64_t bytes, int64_t device) {
  if (at < 0 || at > kMaxTimeNs) return;
  MemoryRecord record{.time_ns = at, .address = static_cast<uint64_t>(address)};
  if (bytes > 0) {
    record.bytes = bytes;
    process.size_at[address] = bytes;
  } else {
    const auto known = process.size_at.find(address);
    if (known == process.size_at.end()) return;
    record.bytes = -known->second;
    process.size_at.erase(known);
  }
  record.device_type = 1;
  record.device_id = static_cast<int32_t>(std::clamp<int64_t>(device, -1, 4096));
  record.file_index = static_cast<uint32_t>(process.out.part.memory.size());
  process.out.part.memory.push_back(record);
}

// RCCL's count is one rank's part of some operations, whose size follows where all communicators have one size.
void Processes::settle_sizes(Process& process) {
  const int64_t n = process.communicator_sizes.size() == 1 ? *process.communicator_sizes.begin() : 0;
  for (CollectiveFact& fact : process.out.collectives) {
    const CollectiveKind kind = collective_kind(process.out.text_of(fact.name));
    const bool is_part = message_bytes(kind, 2, 1) == 2;
    fact.group_size = n;
    fact.bytes = message_bytes(kind, n, fact.bytes);
    if (!is_part) continue;
    const int64_t whole = std::max<int64_t>(message_bytes(kind, n, fact.in_elements), 0);
    const bool both = kind == CollectiveKind::kAllToAll || whole == 0;
    const bool gathers = kind == CollectiveKind::kAllGather || kind == CollectiveKind::kGather;
    if (both || gathers) fact.out_elements = whole;
    if (both || !gathers) fact.in_elements = whole;
  }
}

void Processes::finish(Record& out) {
  bool any_device = false;
  for (const auto& [key, p] : all_) any_device = any_device || p->device_rows > 0;
  for (auto& [key, p] : all_) {
    if (any_device ? p->device_rows == 0 : p->host_rows == 0) {
      out.left_out_processes += p->host_rows > 0;
      continue;
    }
    ProcessPart done;
    done.pid = p->pid;
    done.device_rows = p->device_rows;
    done.host_rows = p->host_rows;
    done.first_device = p->first_device;
    done.stated_rank = p->stated_rank;
    settle_sizes(*p);
    p->launched.settle();
    p->launched.project(p->out, kDeviceRange);
    if (p->launched.gave_up()) p->out.notes.add(problem::rocpd_not_projected, {path_});
    Part& part = p->out.part;
    part.machine_name = p->host;
    part.device = static_cast<int32_t>(std::clamp<int64_t>(p->first_device, -1, 4096));
    part.event_count = p->out.row_count();
    std::string devices;
    for (const auto& [device, name] : p->device_name)
      devices += (devices.empty() ? "[" : ",") + std::string("{\"id\":") + std::to_string(device) +
                 ",\"name\":" + json_quoted(name) + "}";
    if (!devices.empty()) part.metadata.push_back({"deviceProperties", devices + "]"});
    done.part = p->out.finish(done.names);
    done.notes = std::move(p->out.notes);
    out.processes.push_back(std::move(done));
  }
  all_.clear();
}

}  // namespace stageline::rocpd
