#include "readers/common/rows/arg_keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/by_enum.h"
#include "base/number.h"

namespace stageline::rows {
namespace {

// The keys are sorted by name for the binary search.
constexpr std::array<std::pair<std::string_view, ArgKey>, 59> kKeys = {{
    {"Addr", ArgKey::kAddress},
    {"BeginNs", ArgKey::kBeginNs},
    {"Bytes", ArgKey::kMemoryBytes},
    {"Call stack", ArgKey::kCallStack},
    {"Collective name", ArgKey::kCollective},
    {"Comms Id", ArgKey::kCommsId},
    {"Concrete Inputs", ArgKey::kConcreteInputs},
    {"Device Id", ArgKey::kDeviceId},
    {"Device Type", ArgKey::kDeviceType},
    {"Dst Rank", ArgKey::kDstRank},
    {"DurationNs", ArgKey::kDurationNs},
    {"External id", ArgKey::kExternalId},
    {"Fwd thread id", ArgKey::kForwardThread},
    {"Group size", ArgKey::kGroupSize},
    {"In msg nelems", ArgKey::kInElements},
    {"In split size", ArgKey::kInSplit},
    {"Input Dims", ArgKey::kInputDims},
    {"Input dims", ArgKey::kInputDims},
    {"Input type", ArgKey::kInputTypes},
    {"Module Hierarchy", ArgKey::kModuleHierarchy},
    {"Out msg nelems", ArgKey::kOutElements},
    {"Out split size", ArgKey::kOutSplit},
    {"Process Group Description", ArgKey::kGroupDescription},
    {"Process Group Name", ArgKey::kGroup},
    {"Process Group Ranks", ArgKey::kGroupRanks},
    {"Python id", ArgKey::kPythonId},
    {"Python module id", ArgKey::kPythonModule},
    {"Python parent id", ArgKey::kPythonParent},
    {"Rank", ArgKey::kPeer},
    {"Seq", ArgKey::kSeq},
    {"Sequence number", ArgKey::kSequenceNumber},
    {"Src Rank", ArgKey::kSrcRank},
    {"Total Allocated", ArgKey::kTotalAllocated},
    {"Total Reserved", ArgKey::kTotalReserved},
    {"block", ArgKey::kBlock},
    {"blocks per SM", ArgKey::kBlocksPerSm},
    {"bytes", ArgKey::kBytes},
    {"correlation", ArgKey::kCorrelation},
    {"correlation id", ArgKey::kCorrelation},
    {"correlation_id", ArgKey::kCorrelation},
    {"dtype", ArgKey::kDtype},
    {"est. achieved occupancy %", ArgKey::kOccupancy},
    {"external id", ArgKey::kExternalId},
    {"graph node id", ArgKey::kGraphNode},
    {"grid", ArgKey::kGrid},
    {"memory bandwidth (GB/s)", ArgKey::kBandwidth},
    {"name", ArgKey::kNodeName},
    {"original_stream", ArgKey::kOriginalStream},
    {"pid_raw", ArgKey::kRawPid},
    {"rank", ArgKey::kRank},
    {"registers per thread", ArgKey::kRegisters},
    {"shared memory", ArgKey::kSharedMemory},
    {"start_time", ArgKey::kExactStart},
    {"step_num", ArgKey::kStepNumber},
    {"stream", ArgKey::kStream},
    {"theoretical achieved occupancy %", ArgKey::kOccupancy},
    {"wait_on_cuda_event_record_corr_id", ArgKey::kWaitOnRecord},
    {"wait_on_stream", ArgKey::kWaitOnStream},
    {"warps per SM", ArgKey::kWarpsPerSm},
}};

using E = Event;
constexpr ArgField number(int64_t E::* at, bool E::* mark = nullptr, int64_t otherwise = -1) {
  return {.number = at, .mark = mark, .otherwise = otherwise};
}
constexpr ArgField words(std::string_view E::* at, bool E::* mark = nullptr) { return {.text = at, .mark = mark}; }
constexpr ArgField array(std::string_view E::* at, bool E::* mark = nullptr) {
  return {.text = at, .mark = mark, .array = true};
}

// In the order of ArgKey.
constexpr ByEnum<ArgKey, ArgField, static_cast<size_t>(ArgKey::kRawPid) + 1> kFields = {
    {ArgField(),
     number(&E::stream),
     number(&E::correlation),
     number(&E::external_id, &E::has_operator),
     number(&E::bytes, &E::has_copy),
     ArgField{.mark = &E::has_copy},  // kBandwidth
     number(&E::wait_on_stream, &E::has_sync),
     number(&E::wait_on_record, &E::has_sync),
     number(&E::python_id, &E::has_python),
     number(&E::python_parent),
     number(&E::sequence_number, &E::has_operator),
     number(&E::forward_thread),
     words(&E::collective, &E::has_collective),
     words(&E::dtype),
     number(&E::in_elements, nullptr, 0),
     number(&E::out_elements, nullptr, 0),
     number(&E::group_size, nullptr, 0),
     words(&E::group),
     words(&E::group_description),
     words(&E::group_ranks),
     words(&E::in_split),
     words(&E::out_split),
     number(&E::peer, &E::has_collective),
     number(&E::src_rank),
     number(&E::dst_rank),
     number(&E::seq),
     words(&E::comms_id),
     number(&E::address, nullptr, 0),
     number(&E::bytes, &E::has_memory, 0),  // a text that is not a number must not become a free of one byte
     number(&E::total_allocated),
     number(&E::total_reserved),
     number(&E::device_type, nullptr, 0),
     number(&E::device_id),
     array(&E::input_dims, &E::has_inputs),
     array(&E::input_types),
     array(&E::concrete_inputs),
     words(&E::blocks_per_sm, &E::has_launch_shape),
     words(&E::warps_per_sm),
     words(&E::occupancy),
     number(&E::registers),
     number(&E::shared_bytes),
     array(&E::grid, &E::has_launch_shape),
     array(&E::block),
     words(&E::call_stack, &E::has_stack),
     words(&E::module_hierarchy, &E::has_stack),
     number(&E::python_module),
     ArgField(),  // kExactStart
     number(&E::step_number),
     number(&E::rank),
     number(&E::begin_ns),
     number(&E::length_ns),
     number(&E::graph_node),
     words(&E::node_name),
     number(&E::original_stream),
     number(&E::raw_pid)}};

int64_t whole(std::string_view text, int64_t fallback) {
  if (const auto value = parse_int(text)) return *value;
  const auto real = parse_double(text);
  return real && std::abs(*real) < 9e18 ? static_cast<int64_t>(*real) : fallback;
}

}  // namespace

ArgKey arg_key(std::string_view name) {
  const auto end = kKeys.end();
  const auto it =
      std::lower_bound(kKeys.begin(), end, name, [](const auto& entry, std::string_view n) { return entry.first < n; });
  return it != end && it->first == name ? it->second : ArgKey::kNone;
}

const ArgField& arg_field(ArgKey key) { return kFields[key]; }

bool set_number(ArgKey key, int64_t value, Event& event) {
  const ArgField& field = kFields[key];
  if (!field.number) return false;
  event.*field.number = value;
  if (field.mark) event.*field.mark = true;
  return true;
}

void set_arg(ArgKey key, std::string_view text, Event& event) {
  const ArgField& field = kFields[key];
  if (key == ArgKey::kExactStart && text.ends_with(" us"))
    event.exact_start_ns = parse_decimal_ns(text.substr(0, text.size() - 3), 3).value_or(-1);
  if (key == ArgKey::kBandwidth) event.bandwidth_gbps = parse_double(text).value_or(0);
  if (field.number) event.*field.number = whole(text, field.otherwise);
  if (field.text) event.*field.text = text;
  if (field.mark) event.*field.mark |= !text.empty() || field.mark != &Event::has_stack;
}

}  // namespace stageline::rows
