// The lines and events of a plane, decoded: their times, and what their stats say.
#pragma once

#include "model/trace.h"

namespace stageline {

// Reads the bytes of an XSpace (tsl/profiler/protobuf/xplane.proto) plane by plane, in one pass over the file.
//
//   XSpace  planes 1*, errors 2*, warnings 3*, hostnames 4*
//   XPlane  id 1, name 2, lines 3*, event_metadata 4 (map), stat_metadata 5 (map), stats 6*
//
// The names that a plane's lines refer to come after the lines, so a plane is kept undecoded until its end; this takes
// some 50 bytes an event. The HLO programs of /host:metadata, which are not drawn and often make up nine tenths of the
// file, are read for one thing only: which operations communicate or copy. Names do not say it, because JAX calls an
// all-reduce "psum_invariant.7".

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

namespace stageline::xplane {

struct LineHead {
  int64_t id = 0, start_ns = 0;
  std::string name;
  std::vector<std::string_view> events;
};
LineHead read_line(std::string_view bytes);

struct Facts {
  int64_t step_number = -1, root = 0, correlation = -1, bytes = -1, group = -1;
  int64_t producer_type = -1, producer = 0, consumer_type = -1, consumer = 0;
  int64_t device_duration_ps = -1;
  double counter = 0;
  bool has_counter = false, has_source = false, has_hlo = false;
  std::string_view hlo_op, hlo_module, hlo_category, kernel_details, copy_details, memset_details;
  std::string arguments;  // arguments of an annotation: "micro_batch=3,stage=0"
  int32_t micro_batch = -1, chunk = -1, stage = -1;
};

struct Event {
  int64_t name = 0, offset_ps = 0, dur_ps = 0;
  bool is_aggregate = false;
  Facts facts;
};

// Holds the stats of a plane by their ids in it.
enum class StatKey : uint8_t {
  kOther,
#define STAT(key, ...) key,
#include "readers/xplane/stats.def"
};
using StatKeys = std::unordered_map<int64_t, StatKey>;
StatKeys stat_keys(const Plane& plane);

// Reads one event. Its stats may be its own or those of its name; `with_arguments`: further ones are arguments of an
// annotation.
Event read_event(const Plane& plane, const StatKeys& keys, std::string_view bytes, bool with_arguments);

// Splits "forward#micro_batch=3,stage=0#". Returns the name without the arguments, which become facts.
std::string_view take_arguments(std::string_view name, Facts& facts);

// A number that fits into 32 bits; −1 for others and for negative ones.
int32_t small(int64_t value);

// Spells a frame as Kineto does: "$profiler.py:151 start_trace" → "profiler.py(151): start_trace".
std::string frame_name(std::string_view name);
// Spells a copy as Kineto does: "MemcpyH2D" → "Memcpy HtoD".
std::string copy_name(std::string_view name);

// Returns the number after "key:" in "regs:32 grid:8,1,1 block:256,1,1 occ_pct:75".
std::string_view detail(std::string_view details, std::string_view key);

bool is_api_call(std::string_view name);
// Returns true for an operator of TensorFlow's eager mode. Functions of the user are "__inference_NAME_1023" there.
bool is_eager_operator(std::string_view name);
// Returns true for the name of an operator as TensorFlow's executor gives it, "NAME:TYPE": "dense/MatMul:_MklMatMul".
bool is_tf_operator(std::string_view name);
// Returns true for spans in which a thread waits for TensorFlow's or XLA's executor.
bool waits_for_executor(std::string_view name);
// Returns true for names of XLA's own spans, as opposed to those that a program's author wrote.
bool is_internal(std::string_view name);

// A device's name in parts: "/device:GPU:3", "/device:TPU:0 SparseCore 1" → kind, number, the rest.
struct DeviceName {
  std::string kind, rest;
  int64_t number = -1;
};
std::optional<DeviceName> device_of(std::string_view plane);

// Returns true for a line that repeats in other terms what other lines of its device have.
bool is_derived(std::string_view line);
// Returns the number in "Stream #16(MemcpyH2D)", 16.
int64_t stream_number(const std::string& line);

}  // namespace stageline::xplane
