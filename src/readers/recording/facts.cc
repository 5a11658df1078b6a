#include "readers/recording/facts.h"

#include <cstdio>

#include "model/collective_kind.h"
#include "readers/common/range_message.h"

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

CollectiveFact FactMaker::fact_of(const Message& m) const {
  CollectiveFact fact{.name = m.name, .peer = m.peer, .bytes = m.bytes};
  const std::string name(trace_.names.text(m.name));
  int32_t other = m.peer;  // in a job, the peer is a global rank
  if (m.communicator != 0) {
    fact.group = trace_.names.intern(hex(m.communicator));
    fact.group_size = m.size;
    const auto known = rank_of_.find({m.communicator, m.peer});
    other = known == rank_of_.end() ? -1 : known->second;
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

}  // namespace stageline::recording
