#include <cstdio>

#include "base/parallel.h"
#include "model/collective_kind.h"
#include "model/statistics.h"
#include "readers/common/range_message.h"
#include "readers/common/relate_slices.h"
#include "readers/recording/rows.h"

namespace stageline::recording {
namespace {

constexpr std::string_view kNccl = "nccl:";

std::string_view message_name(CellKind kind) {
  switch (kind) {
    case CellKind::kSendForward:
    case CellKind::kSendBackward: return "send";
    case CellKind::kRecvForward:
    case CellKind::kRecvBackward: return "recv";
    default: return {};
  }
}

std::string hex(uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

enum : uint8_t { kPlain, kRange, kKernelRow, kCopyRow, kFillRow, kRuntimeRow, kDriverRow, kDeviceRange, kExchange };
const std::vector<CategoryInfo>& categories() {
  static const std::vector<CategoryInfo> all = {
#include "readers/recording/categories.def"
  };
  return all;
}

// Returns true for calls of the driver such as "cuLaunchKernel"; "cudaLaunchKernel" is the runtime's.
bool is_driver_call(std::string_view name) { return name.starts_with("cu") && !name.starts_with("cuda"); }

}  // namespace

void FactMaker::add_lanes(const Content& content, int32_t rank) {
  for (const auto& [id, lane] : content.lanes)
    if (lane.device_kind == kCommunicatorLane) rank_of_.try_emplace({lane.stream, lane.device}, rank);
}

void FactMaker::add(const Op& op, const Row& row, const LaneRow* lane, std::string_view name, std::string_view domain) {
  if (op.is_cell && !has_cells_) {
    has_cells_ = true;
    ranges_ = {};
  }
  Message message;
  message.index = op.file_index;
  message.rank = op.rank;
  message.peer = row.peer;
  message.bytes = row.bytes;
  message.sequence = row.sequence;
  if (lane && lane->device_kind == kCommunicatorLane) {
    message.communicator = lane->stream;
    message.own = lane->device;
    message.size = std::min<uint32_t>(lane->thread, kMaxRankNumber);
    message.timed = !row.host_instead;
    if (name.starts_with(kNccl)) name.remove_prefix(kNccl.size());
    name = name.substr(0, name.find(" ("));  // without algorithm, protocol and channels
    message.bytes = message_bytes(collective_kind(name), message.size, row.bytes);
    message.name = trace_.names.intern(name);
    messages_.push_back(message);
    return;
  }
  // These are names of code, which say nothing about the pipeline.
  if (lane && (lane->device_kind == kKernelLane || lane->device_kind == kLaunchLane)) return;
  const std::string_view direction = message_name(op.kind);
  if (!direction.empty() && (row.peer >= 0 || row.bytes >= 0)) {
    message.name = trace_.names.intern(direction);
    messages_.push_back(message);
    return;
  }
  // The program's own call, known by its name.
  if (op.kind == CellKind::kCollective && row.bytes >= 0 && !name.empty()) {
    message.name = trace_.names.intern(name);
    message.sequence = -1;  // its group, by which others could be identified, is not known
    messages_.push_back(message);
    return;
  }
  if (has_cells_ || op.is_cell || row.kind != 0 || name.empty()) return;
  const RangeText parsed = parse_range_message(name);
  Range range{op.file_index, {}};
  range.fact.message = trace_.names.intern(name);
  range.fact.domain = trace_.names.intern(domain);
  range.fact.micro_batch = parsed.micro_batch;
  range.fact.chunk = parsed.chunk;
  range.fact.stage = parsed.stage;
  range.fact.step = parsed.step >= 0 ? parsed.step : op.step;
  ranges_.push_back(range);
}

// The ranks of a communicator as "[0, 4]"; 0 where the recording of one is missing.
StringId FactMaker::members_of(uint64_t communicator, uint32_t size) {
  const auto [at, fresh] = members_.try_emplace(communicator, 0);
  std::string text;
  for (uint32_t own = 0; fresh && own < size; ++own) {
    const auto rank = rank_of_.find({communicator, own});
    if (rank == rank_of_.end()) return 0;
    text += (text.empty() ? "[" : ", ") + std::to_string(rank->second);
  }
  if (!text.empty()) at->second = trace_.names.intern(text + "]");
  return at->second;
}

CollectiveFact FactMaker::fact_of(const Message& m) {
  CollectiveFact fact{.name = m.name, .peer = m.peer, .bytes = m.bytes};
  const std::string name(trace_.names.text(m.name));
  int32_t other = m.peer;  // in a job, the peer is a global rank
  if (m.communicator != 0) {
    fact.group = trace_.names.intern(hex(m.communicator));
    fact.group_size = m.size;
    fact.group_ranks = members_of(m.communicator, m.size);
    other = value_at(rank_of_, {m.communicator, m.peer}, -1);
  }
  if (m.timed) fact.seq = m.sequence;
  const bool send = name == "send", receive = name == "recv";
  if (send || receive) {
    fact.src_rank = send ? m.rank : other;
    fact.dst_rank = send ? other : m.rank;
  } else if (m.communicator != 0 && m.timed && m.sequence >= 0) {
    fact.comms_id = trace_.names.intern(hex(m.communicator) + " " + name + " " + std::to_string(m.sequence));
  }
  return fact;
}

void FactMaker::fill() {
  if (messages_.empty() && ranges_.empty()) return;
  for (Part& part : trace_.parts)
    for (uint32_t i = 0; i < part.slices.size(); ++i) {
      const uint32_t index = part.slices.file_index[i];
      if (const Message* message = find_index(messages_, index)) {
        part.collectives.push_back(fact_of(*message));
        part.collectives.back().slice = i;
      } else if (const Range* range = find_index(ranges_, index)) {
        part.ranges.push_back(range->fact);
        part.ranges.back().slice = i;
      }
    }
  messages_ = {};
  ranges_ = {};
}

void KernelMaker::add_lanes(const Content& content, int32_t rank, const std::map<uint16_t, uint32_t>& places,
                            const std::vector<std::string>& names) {
  for (const auto& [id, lane] : content.lanes) {
    LaneFacts facts;
    const bool of_host = lane.device_kind == 0 || lane.device_kind == kLaunchLane;
    facts.kind = of_host ? LaneKind::kHostThread : LaneKind::kDeviceStream;
    facts.category = of_host                                 ? kRange
                     : lane.device_kind == kCommunicatorLane ? kExchange
                     : lane.device_kind == kKernelLane       ? kKernelRow
                                                             : kDeviceRange;
    if (of_host) {
      facts.pid = std::to_string(content.head.pid);
      facts.tid = std::to_string(lane.thread);
    } else if (lane.device_kind == kKernelLane) {
      facts.stream = lane.stream;
      facts.pid = std::to_string(lane.device);
      facts.tid = "stream " + std::to_string(facts.stream);
    }
    lanes_.try_emplace({rank, names[places.at(id)]}, std::move(facts));
  }
}

void KernelMaker::add(const Op& op, const Row& row, const LaneRow* lane) {
  if (!lane) return;
  Note note{.index = op.file_index, .step = row.step};
  if (lane->device_kind == kKernelLane || lane->device_kind == kLaunchLane)
    if (row.sequence >= 0 && row.sequence < kNoCorrelation) note.correlation = static_cast<uint32_t>(row.sequence);
  if (lane->device_kind == kKernelLane) {
    any_ = true;
    note.bytes = row.bytes;
    note.category = row.bytes < 0                                         ? kKernelRow
                    : trace_.names.text(op.name_id).starts_with("Memset") ? kFillRow
                                                                          : kCopyRow;
  } else if (lane->device_kind == kLaunchLane) {
    note.category = is_driver_call(trace_.names.text(op.name_id)) ? kDriverRow : kRuntimeRow;
  } else if (lane->device_kind == kCommunicatorLane && !row.host_instead) {
    note.category = kExchange;
    note.communicates = true;
  } else {
    return;  // its lane says what it is
  }
  notes_.push_back(note);
}

void KernelMaker::append_steps(std::vector<Op>& ops) {
  if (!any_) return;
  std::map<int32_t, int64_t> last;  // last end on each rank
  for (const Op& op : ops) {
    const auto [at, is_new] = last.try_emplace(op.rank, op.end_ns);
    if (!is_new) at->second = std::max(at->second, op.end_ns);
  }
  sort_stably(steps_, {}, [](const Op& a) { return std::pair(a.rank, a.start_ns); });
  for (size_t i = 0; i < steps_.size(); ++i) {
    Op& op = steps_[i];
    if (!last.contains(op.rank)) continue;
    const bool followed = i + 1 < steps_.size() && steps_[i + 1].rank == op.rank;
    op.end_ns = std::max(op.start_ns, followed ? steps_[i + 1].start_ns : last[op.rank]);
    op.name_id = trace_.names.intern("ProfilerStep#" + std::to_string(op.step));
    ops.push_back(op);
  }
}

void KernelMaker::fill() {
  if (!any_) return;
  FileNames names;
  names.categories = trace_.categories = categories();
  for (StringId id = 0; id < trace_.names.size(); ++id) names.names.emplace_back(trace_.names.text(id));
  parallel_for(trace_.parts.size(), [&](size_t p) {
    Part& part = trace_.parts[p];
    fill_part(part);
    relate_slices(names, {}, {.lanes_are_typed = true}, part);
    // Where no launch says whose step it is: that of the host while it ran.
    Slices& s = part.slices;
    std::map<int64_t, uint16_t> number;
    for (size_t k = 0; k < part.steps.size(); ++k)
      number.try_emplace(part.steps[k].number, static_cast<uint16_t>(k + 1));
    uint32_t first = UINT32_MAX, last = 0;
    for (size_t i = 0; i < s.size(); ++i) {
      first = std::min(first, s.file_index[i]);
      last = std::max(last, s.file_index[i]);
      if (!is_device_work(categories()[s.category_id[i]].kind) || s.partner[i] != kNoSliceIndex) continue;
      const Note* note = find_index(notes_, s.file_index[i]);
      const auto step = note ? number.find(note->step) : number.end();
      if (step != number.end()) s.step[i] = step->second;
    }
    if (s.size() == 0) return;
    for (uint32_t& index : s.file_index) index -= first;
    part.event_count = int64_t{last} - first + 1;
  });
}

void KernelMaker::fill_part(Part& part) const {
  Slices& s = part.slices;
  const size_t n = s.size();
  s.correlation.assign(n, kNoCorrelation);
  s.args_offset_low.assign(n, 0);
  s.args_offset_high.assign(n, 0);
  s.stream_id.assign(n, 0);
  s.category_id.assign(n, kRange);
  s.kernel_class.assign(n, 0);
  for (Lane& lane : part.lanes) {
    const auto known = lanes_.find({part.rank, lane.name});
    uint16_t stream = 0;
    uint8_t category = kRange;
    if (known != lanes_.end()) {
      lane.kind = known->second.kind;
      lane.pid = known->second.pid;
      lane.tid = known->second.tid;
      category = known->second.category;
      if (known->second.stream >= 0 && part.streams.size() < UINT16_MAX) {
        stream = static_cast<uint16_t>(part.streams.size());
        part.streams.push_back(known->second.stream);
      }
    }
    for (uint32_t i = lane.begin; i < lane.end; ++i) {
      s.category_id[i] = category;
      s.stream_id[i] = stream;
      const Note* note = find_index(notes_, s.file_index[i]);
      if (!note) continue;
      s.category_id[i] = note->category;
      s.correlation[i] = note->correlation;
      if (note->communicates) s.kernel_class[i] = static_cast<uint8_t>(KernelClass::kCommunication);
      if (note->category != kCopyRow && note->category != kFillRow) continue;
      // The rate is in GB/s as Kineto counts: bytes divided by nanoseconds.
      const double rate = share_or_zero(note->bytes, s.dur_ns[i]);
      part.copies.push_back({i, note->bytes, rate});
    }
  }
}

}  // namespace stageline::recording
