// Which files of a source are Perfetto's, and which of them have the same recording beside them as JSON: asked by the
// readers of both, so that one of them takes the source and says so.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "readers/reader.h"

namespace stageline {

// Whether a message may begin with this field of Perfetto's TracePacket; no other format's field 1 does so for long.
bool is_packet_field(uint32_t id, uint8_t wire);
// How many packets stand at the head of a file, up to `most`; −1 where something is none. `whole`: the head is the
// file.
int count_packets(std::string_view head, int most, bool whole);

// Two files of one folder and one stem ("rank0.pftrace.gz", "rank0.pt.trace.json.gz") whose times count from the same
// second are one recording. The JSON says more (docs/formats/perfetto.md), so it is read where every file has one.
struct PerfettoFiles {
  std::vector<size_t> ours;        // Perfetto's
  std::vector<size_t> with_twin;   // those of them that have a JSON
  std::vector<size_t> json_twins;  // and these
  bool certain = false;            // three packets in a row, or a name that says it
  bool json_says_more() const { return !ours.empty() && with_twin.size() == ours.size(); }
  bool perfetto_says_more() const { return !json_twins.empty() && with_twin.size() < ours.size(); }
};
PerfettoFiles perfetto_files(const Source& source);

}  // namespace stageline
