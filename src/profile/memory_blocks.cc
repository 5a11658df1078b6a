#include "profile/memory_blocks.h"

#include "model/lanes.h"

namespace stageline {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 60;

struct Place {
  MemoryDevice device;
  uint64_t address;
  bool operator==(const Place&) const = default;
};
struct PlaceHash {
  size_t operator()(const Place& p) const {
    const auto device =
        static_cast<uint64_t>(static_cast<uint32_t>(p.device.type)) << 32 | static_cast<uint32_t>(p.device.id);
    return std::hash<uint64_t>()(p.address * 0x9E3779B97F4A7C15u ^ device);
  }
};

constexpr double kMaxCounted = 1e18;  // larger ones are damaged

bool is_allocated_bytes(std::string_view counter) {
  // totalAllocated: a column of Ascend's MEMORY_RECORD.
  return counter.ends_with("memory_allocated") || counter.ends_with("/ totalAllocated");
}

}  // namespace

MemoryDevice device_of(const MemoryRecord& record) {
  return {record.device_type, record.device_type == 0 ? -1 : record.device_id};
}

int64_t bytes_of(const MemoryRecord& record) { return std::clamp(record.bytes, -kMaxBytes, kMaxBytes); }

std::string memory_device_name(MemoryDevice device) {
  switch (device.type) {
    case 0: return "CPU";
#define DEVICE(number, name) \
  case number: return name " " + std::to_string(device.id);
#include "profile/device_types.def"
    default: return "device type " + std::to_string(device.type) + ", " + std::to_string(device.id);
  }
}

MemoryHistory memory_history(const Part& part) {
  MemoryHistory history;
  const std::vector<MemoryRecord>& records = part.memory;
  for (uint32_t i = 0; i < records.size(); ++i) {
    if (records[i].bytes == 0) continue;
    history.by_time.push_back(i);
    history.devices.push_back(device_of(records[i]));
  }
  sort_unique(history.devices);
  if (history.devices.size() > MemoryHistory::kMaxDevices) {
    history.devices.resize(MemoryHistory::kMaxDevices);
    history.more_devices = std::erase_if(history.by_time, [&](uint32_t i) {
      return !std::ranges::binary_search(history.devices, device_of(records[i]));
    });
  }
  sort_stably(history.by_time, {}, [&](uint32_t a) { return std::tie(records[a].time_ns, records[a].file_index); });
  history.block_of.assign(records.size(), MemoryBlock::kNone);
  std::unordered_map<Place, uint32_t, PlaceHash> live;
  for (const uint32_t i : history.by_time) {
    const int64_t bytes = bytes_of(records[i]);
    const auto next = static_cast<uint32_t>(history.blocks.size());
    const Place place{device_of(records[i]), records[i].address};
    const bool placed = place.address != 0;
    history.without_address += !placed;
    if (bytes > 0) {
      if (placed) {
        const auto [it, added] = live.try_emplace(place, next);
        if (!added) {
          history.blocks[it->second].lost_free = true;
          ++history.lost_frees;
          it->second = next;
        }
      }
      history.blocks.push_back({i, MemoryBlock::kNone, bytes, false});
      history.block_of[i] = next;
    } else if (const auto it = placed ? live.find(place) : live.end(); it != live.end()) {
      history.blocks[it->second].freed = i;
      history.block_of[i] = it->second;
      live.erase(it);
    } else {
      history.blocks.push_back({MemoryBlock::kNone, i, -bytes, false});
      history.block_of[i] = next;
    }
  }
  return history;
}

std::vector<uint32_t> slices_of_memory(const Part& part) {
  std::vector<uint32_t> slices(part.memory.size(), kNoSliceIndex);
  std::vector<SliceQuestion> questions;
  questions.reserve(part.memory.size());
  for (size_t i = 0; i < part.memory.size(); ++i) {
    const MemoryRecord& record = part.memory[i];
    if (record.lane < part.lanes.size() && part.lanes[record.lane].kind != LaneKind::kDeviceStream)
      questions.push_back({record.lane, record.time_ns, i});
  }
  find_open_slices(part, std::move(questions), [&](size_t record, uint32_t slice) { slices[record] = slice; });
  return slices;
}

int64_t peak_device_memory(const Part& part) {
  int64_t peak = -1;
  for (const MemoryRecord& record : part.memory)
    if (device_of(record).type != 0) peak = std::max(peak, record.total_allocated);
  for (const CounterSeries& counter : part.counters)
    for (const double bytes : counter.value)
      if (is_allocated_bytes(counter.name) && bytes > 0 && bytes < kMaxCounted)
        peak = std::max<int64_t>(peak, std::llround(bytes));
  return peak;
}

std::vector<int64_t> peak_memory_of_stages(const Trace& trace) {
  std::vector<int64_t> peaks;
  for (const Part& part : trace.parts) {
    const int64_t peak = peak_device_memory(part);
    if (peak < 0 || part.stage < 0) continue;
    if (peaks.size() <= static_cast<size_t>(part.stage)) peaks.resize(part.stage + 1, -1);
    peaks[part.stage] = std::max(peaks[part.stage], peak);
  }
  return peaks;
}

}  // namespace stageline
