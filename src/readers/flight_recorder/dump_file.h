// Reads one rank's dump of a flight recorder into a Part that still has its own string ids.
#pragma once

#include "model/trace.h"

namespace stageline {
class Progress;
namespace flight_recorder {

struct DumpFile {
  std::string path;
  int32_t rank = kUnknown;  // from the file's name; kUnknown when only the dump can say it
};

struct Dump {
  Part part;  // names and texts are ids of `names`, groups of `groups`
  StringPool names;
  std::vector<FlightGroup> groups;  // as this rank knows them
  std::string version;              // version of the format: "2.10"
  bool has_frames = false;
  Diagnostics diagnostics;
};

// Returns the digits at the end of names such as "nccl_trace_rank_3", "fr_3.json" or "comm_lib_trace_rank_12.pickle";
// −1 when there are none.
int32_t rank_of_name(const std::string& path);

// Returns true when these first bytes are a dump's, as a pickle or as JSON.
bool looks_like_dump(std::string_view head);

// Errors: kBadInput when no call could be read; kIo, kLimit.
Result<Dump> read_dump(const DumpFile& file, Progress* progress);

}  // namespace flight_recorder
}  // namespace stageline
