#include "readers/common/perfetto_head.h"

#include "base/json_members.h"
#include "base/perfetto_fields.h"

namespace stageline {

std::optional<PacketHead> packet_head(const char* at, const char* end) {
  if (at == end || *at != '\x0a') return std::nullopt;
  const char* from = at + 1;
  uint64_t length = 0;
  if (!ProtoScan::read_varint(from, end, length)) return std::nullopt;
  return PacketHead{static_cast<size_t>(from - at), length > SIZE_MAX / 2 ? SIZE_MAX / 2 : static_cast<size_t>(length)};
}

namespace {

constexpr size_t kHeadBytes = size_t{1} << 16;
constexpr size_t kMaxPacketBytes = size_t{64} << 20;
constexpr int kSureOf = 3;

// Returns a path without its endings: "runs/rank0.pftrace.gz" → "runs/rank0".
std::string stem_of(std::string path) {
  for (const char* end : {".gz", ".zst", ".pftrace", ".perfetto-trace", ".pb", ".proto", ".json", ".trace", ".pt"})
    if (path.ends_with(end)) path.resize(path.size() - std::string_view(end).size());
  return path;
}

bool has_name(std::string_view path) {
  for (const char* end : {".gz", ".zst"})
    if (path.ends_with(end)) path.remove_suffix(std::string_view(end).size());
  return path.ends_with(".pftrace") || path.ends_with(".perfetto-trace");
}

// Returns the second at which a file's times begin, by its first snapshot of clocks or by what Kineto says; −1 when
// neither does.
int64_t second_of_packets(std::string_view head) {
  for (ProtoScan file(head); file.next();) {
    if (file.id != perfetto::kTracePacket || !file.is_bytes()) break;
    for (ProtoScan packet(file.bytes); packet.next();) {
      if (packet.id != perfetto::packet::kClockSnapshot || !packet.is_bytes()) continue;
      for (ProtoScan clocks(packet.bytes); clocks.next();) {
        if (clocks.id != perfetto::clock_snapshot::kClock || !clocks.is_bytes()) continue;
        uint64_t id = 0, time = 0;
        for (ProtoScan clock(clocks.bytes); clock.next();) {
          if (clock.id == perfetto::clock_field::kId) id = clock.value;
          if (clock.id == perfetto::clock_field::kTime) time = clock.value;
        }
        if (id == perfetto::kRealtime) return time / 1'000'000'000;
      }
    }
  }
  return -1;
}
int64_t second_of_json(std::string_view head) {
  for (const JsonMember& member : json_members(head, 64))
    if (member.key == "baseTimeNanoseconds")
      if (const auto ns = json_integer(member.value); ns && *ns > 0) return *ns / 1'000'000'000;
  return -1;
}

// Counts the packets at the head of a file, up to `most`; −1 where something is not a packet. `whole`: the head is the
// whole file.
int count_packets(std::string_view head, int max, bool whole) {
  const char *at = head.data(), *end = head.data() + head.size();
  int count = 0;
  while (at != end && count < max) {
    const auto packet = packet_head(at, end);
    if (!packet) return whole || end - at > static_cast<ptrdiff_t>(kMaxPacketHeadBytes) ? -1 : count;
    const size_t left = (end - at) - packet->head;
    const bool cut = packet->length > left;
    if (packet->length > kMaxPacketBytes) return -1;
    ProtoScan scan({at + packet->head, std::min(packet->length, left)});
    int fields = 0;
    for (; fields < 64 && scan.next(); ++fields) {
      if (!is_packet_field(scan.id, scan.wire)) return -1;
      // Profiles of XLA also begin with field 1; their planes have names in field 2.
      if (scan.id == 2 && (!scan.is_bytes() || scan.bytes.starts_with("/") ||
                           scan.bytes.starts_with("Task Environment") || scan.bytes.starts_with("#Chip")))
        return -1;
    }
    if (scan.is_damaged() && !cut) return -1;
    if (cut && fields == 0) {  // one long field is judged by its key alone
      const char* from = at + packet->head;
      uint64_t key = 0;
      if (from == end || !ProtoScan::read_varint(from, end, key)) return count;
      if (!is_packet_field(static_cast<uint32_t>(key >> 3), static_cast<uint8_t>(key & 7))) return -1;
    }
    ++count;
    if (cut) break;
    at += packet->head + packet->length;
  }
  return count;
}

}  // namespace

bool is_packet_field(uint32_t id, uint8_t wire) {
  using namespace perfetto;
  switch (id) {
    case 3:  // the field trusted_uid
    case packet::kTimestamp:
    case packet::kSequenceId:
    case packet::kSequenceFlags:
    case packet::kClockId:
    case packet::kStateCleared:
    case packet::kMachineId: return wire == ProtoScan::kVarint;
    case packet::kFtraceEvents:
    case packet::kClockSnapshot:
    case packet::kTrackEvent:
    case packet::kInternedData:
    case packet::kDefaults:
    case packet::kTrackDescriptor: return wire == ProtoScan::kBytes;
    default: return (id >= 2 && id <= 13) || (id >= 33 && id <= 199) || id == 900 || (id >= 1000 && id <= 1999);
  }
}

PerfettoFiles perfetto_files(const Source& source) {
  PerfettoFiles out;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const std::string_view head = source.head(i);
    if (head.empty() || head[0] != '\x0a' || begins_otlp(head)) continue;
    const int packets = count_packets(head, kSureOf, head.size() < kHeadBytes);
    const bool named = has_name(source.files[i].path);
    if (packets < 1) continue;
    out.ours.push_back(i);
    out.certain |= packets >= kSureOf || named;
  }
  if (out.ours.empty() || out.ours.size() == source.files.size()) return out;
  std::multimap<std::string, size_t> json;  // stem → file
  for (size_t i = 0; i < source.files.size(); ++i) {
    const std::string_view head = source.head(i);
    const size_t at = head.find_first_not_of(" \t\r\n");
    if (at != std::string_view::npos && head[at] == '{') json.emplace(stem_of(source.files[i].path), i);
  }
  for (const size_t i : out.ours) {
    const std::string stem = stem_of(source.files[i].path);
    const int64_t second = second_of_packets(source.head(i));
    if (second < 0) continue;
    for (auto at = json.lower_bound(stem); at != json.end() && at->first.starts_with(stem); ++at) {
      const bool same_stem = at->first.size() == stem.size() || at->first[stem.size()] == '.';
      if (!same_stem || second_of_json(source.head(at->second)) != second) continue;
      out.with_twin.push_back(i);
      out.json_twins.push_back(at->second);
      break;
    }
  }
  return out;
}

}  // namespace stageline
