// Finds which files of a source are Perfetto's, and which of them have the same recording as JSON next to them. The
// readers of both formats call this, so that exactly one of them takes the source and reports it.
#pragma once

#include "base/proto_scan.h"
#include "readers/reader.h"

namespace stageline {

// True when a message may begin with this field of Perfetto's TracePacket. Other formats' field 1 fails this test soon.
bool is_packet_field(uint32_t id, uint8_t wire);

// Lengths of a packet's key and size, and of what follows.
struct PacketHead {
  size_t head = 0, length = 0;
};
constexpr size_t kMaxPacketHeadBytes = 11;
std::optional<PacketHead> packet_head(const char* at, const char* end);  // nullopt: there is none, or it is cut

// Two files in one folder with the same stem ("rank0.pftrace.gz", "rank0.pt.trace.json.gz") are one recording when
// their times count from the same second. The JSON contains more (docs/formats/perfetto.md), so it is read where every
// Perfetto file has one.
struct PerfettoFiles {
  std::vector<size_t> ours;        // Perfetto's files
  std::vector<size_t> with_twin;   // those of them that have a JSON
  std::vector<size_t> json_twins;  // those JSON files
  bool certain = false;            // a file has three packets in a row, or a name that says so
  bool json_says_more() const { return !ours.empty() && with_twin.size() == ours.size(); }
};
PerfettoFiles perfetto_files(const Source& source);

// Recognises spans of OpenTelemetry as protobuf by their first bytes, which are also those of Perfetto's packets.
// Returns true where a request begins. It holds the spans of a resource, these hold the resource, and this an attribute
// with a key in printable characters, each as field 1. In a packet of Perfetto's the third of these is a number.
inline bool begins_otlp(std::string_view bytes) {
  const char *at = bytes.data(), *const end = at + bytes.size();
  uint64_t length = 0;
  for (int level = 0; level < 4; ++level)
    if (at == end || *at++ != '\x0a' || !ProtoScan::read_varint(at, end, length) || length == 0) return false;
  if (length >= static_cast<uint64_t>(end - at)) return false;
  for (const char* const key_end = at + length; at != key_end; ++at)
    if (*at <= ' ' || *at > '~') return false;
  return *at == '\x12';
}

}  // namespace stageline
