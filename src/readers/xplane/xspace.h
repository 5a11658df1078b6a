// Reads the bytes of an XSpace (tsl/profiler/protobuf/xplane.proto) plane by plane, in one pass over the file.
//
//   XSpace  planes 1*, errors 2*, warnings 3*, hostnames 4*
//   XPlane  id 1, name 2, lines 3*, event_metadata 4 (map), stat_metadata 5 (map), stats 6*
//
// The names that a plane's lines refer to come after the lines, so a plane is kept undecoded until its end; this takes
// some 50 bytes an event. The HLO programs of /host:metadata, which are not drawn and often make up nine tenths of the
// file, are read for one thing only: which operations communicate or copy. Names do not say it, because JAX calls an
// all-reduce "psum_invariant.7".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"

namespace stageline {
class Progress;
namespace xplane {

struct EventName {
  std::string name, display_name;
  std::string stats;  // its XStat messages, each after its length as a varint
};

struct Plane {
  int64_t id = 0;
  std::string name;
  std::unordered_map<int64_t, EventName> events;   // event_metadata
  std::unordered_map<int64_t, std::string> stats;  // the names of stat_metadata
  std::vector<std::string> own_stats;              // XStat messages of the plane itself
  int64_t programs = 0;                            // number of HLO modules

  size_t line_count() const { return lines_.size(); }
  std::string_view line(size_t i) const { return std::string_view(bytes_).substr(lines_[i].first, lines_[i].second); }

  std::string bytes_;
  std::vector<std::pair<size_t, size_t>> lines_;
};

// Facts at the end of the file and in small planes. They are read first, because times count from them.
struct SpaceFacts {
  std::vector<std::string> planes, hostnames, errors, warnings;
  int64_t start_ns = -1, stop_ns = -1;  // profile_start_time and profile_stop_time, since the epoch
  std::vector<std::pair<std::string, std::string>> versions;  // texts of /host:metadata: "jax_version"
  int64_t process_id = -1;
  // The opcode ("all-reduce") of each operation that communicates or copies, by program and operation.
  std::unordered_map<std::string, std::string> opcodes;

  std::string_view opcode(std::string_view program, std::string_view operation) const;
};

// Errors: those of Input, and kBadInput when no plane could be read. `notes`: xplane.truncated, xplane.damaged.
Result<SpaceFacts> read_facts(const std::string& path);
Status for_each_plane(const std::string& path, Diagnostics& notes, Progress* progress,
                      const std::function<void(Plane&)>& use);

// One XStat. `text` is its str_value, or the name of what its ref_value refers to.
struct Stat {
  int64_t id = 0;
  enum Kind : uint8_t { kNone, kInteger, kReal, kText, kBytes } kind = kNone;
  int64_t integer = 0;
  double real = 0;
  std::string_view text;
};
Stat read_stat(std::string_view message, const std::unordered_map<int64_t, std::string>& names);

}  // namespace xplane
}  // namespace stageline
