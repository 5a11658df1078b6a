// The lines and events of a plane, decoded: their times, and what their stats say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "readers/xplane/xspace.h"

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
  std::string_view hlo_module, hlo_category, kernel_details, copy_details, memset_details;
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
  kStepNumber,
  kRoot,
  kProducerType,
  kProducer,
  kConsumerType,
  kConsumer,
  kCorrelation,
  kHloOp,
  kHloModule,
  kHloCategory,
  kBytes,
  kKernelDetails,
  kCopyDetails,
  kMemsetDetails,
  kDeviceOffset,
  kDeviceDuration,
  kCounter,
  kGroup,
  kSource,
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

// Reads the names of lines, planes and events in profiles of XLA and TensorFlow.

// Spells a frame as Kineto does: "$profiler.py:151 start_trace" → "profiler.py(151): start_trace".
std::string frame_name(std::string_view name);
// Spells a copy as Kineto does: "MemcpyH2D" → "Memcpy HtoD".
std::string copy_name(std::string_view name);

// Returns the number after "key:" in "regs:32 grid:8,1,1 block:256,1,1 occ_pct:75".
std::string_view detail(std::string_view details, std::string_view key);

bool is_api_call(std::string_view name);
// Returns true for the name of an operator as TensorFlow's executor gives it, "NAME:TYPE": "dense/MatMul:_MklMatMul".
bool is_tf_operator(std::string_view name);
// Returns true for spans in which the thread of Python waits for TensorFlow's executor.
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
