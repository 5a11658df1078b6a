// Finds which files of a source are Perfetto's, and which of them have the same recording as JSON next to them. The
// readers of both formats call this, so that exactly one of them takes the source and reports it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

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

}  // namespace stageline
