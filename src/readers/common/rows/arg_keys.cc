#include "readers/common/rows/arg_keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

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

bool keeps_array(ArgKey key) {
  switch (key) {
    case ArgKey::kInputDims:
    case ArgKey::kInputTypes:
    case ArgKey::kConcreteInputs:
    case ArgKey::kGrid:
    case ArgKey::kBlock: return true;
    default: return false;
  }
}

bool set_number(ArgKey key, int64_t value, Event& event) {
  switch (key) {
    case ArgKey::kStream: event.stream = value; return true;
    case ArgKey::kCorrelation: event.correlation = value; return true;
    case ArgKey::kExternalId:
      event.external_id = value;
      event.has_operator = true;
      return true;
    case ArgKey::kBytes:
      event.bytes = value;
      event.has_copy = true;
      return true;
    case ArgKey::kWaitOnStream:
      event.wait_on_stream = value;
      event.has_sync = true;
      return true;
    case ArgKey::kWaitOnRecord:
      event.wait_on_record = value;
      event.has_sync = true;
      return true;
    case ArgKey::kPythonId:
      event.python_id = value;
      event.has_python = true;
      return true;
    case ArgKey::kPythonParent: event.python_parent = value; return true;
    case ArgKey::kSequenceNumber:
      event.sequence_number = value;
      event.has_operator = true;
      return true;
    case ArgKey::kForwardThread: event.forward_thread = value; return true;
    case ArgKey::kInElements: event.in_elements = value; return true;
    case ArgKey::kOutElements: event.out_elements = value; return true;
    case ArgKey::kGroupSize: event.group_size = value; return true;
    case ArgKey::kPeer:
      event.peer = value;
      event.has_collective = true;
      return true;
    case ArgKey::kSrcRank: event.src_rank = value; return true;
    case ArgKey::kDstRank: event.dst_rank = value; return true;
    case ArgKey::kSeq: event.seq = value; return true;
    case ArgKey::kAddress: event.address = value; return true;
    case ArgKey::kMemoryBytes:
      event.bytes = value;
      event.has_memory = true;
      return true;
    case ArgKey::kTotalAllocated: event.total_allocated = value; return true;
    case ArgKey::kTotalReserved: event.total_reserved = value; return true;
    case ArgKey::kDeviceType: event.device_type = value; return true;
    case ArgKey::kDeviceId: event.device_id = value; return true;
    case ArgKey::kRegisters: event.registers = value; return true;
    case ArgKey::kSharedMemory: event.shared_bytes = value; return true;
    case ArgKey::kPythonModule: event.python_module = value; return true;
    case ArgKey::kStepNumber: event.step_number = value; return true;
    case ArgKey::kRank: event.rank = value; return true;
    case ArgKey::kBeginNs: event.begin_ns = value; return true;
    case ArgKey::kDurationNs: event.length_ns = value; return true;
    case ArgKey::kGraphNode: event.graph_node = value; return true;
    case ArgKey::kOriginalStream: event.original_stream = value; return true;
    case ArgKey::kRawPid: event.raw_pid = value; return true;
    default: return false;
  }
}

void set_arg(ArgKey key, std::string_view text, Event& event) {
  switch (key) {
    case ArgKey::kNone: break;
    case ArgKey::kExactStart:
      if (text.ends_with(" us"))
        event.exact_start_ns = parse_decimal_ns(text.substr(0, text.size() - 3), 3).value_or(-1);
      break;
    case ArgKey::kBandwidth:
      event.bandwidth_gbps = parse_double(text).value_or(0);
      event.has_copy = true;
      break;
    case ArgKey::kCollective:
      event.collective = text;
      event.has_collective = true;
      break;
    case ArgKey::kDtype: event.dtype = text; break;
    case ArgKey::kNodeName: event.node_name = text; break;
    case ArgKey::kGroup: event.group = text; break;
    case ArgKey::kGroupDescription: event.group_description = text; break;
    case ArgKey::kGroupRanks: event.group_ranks = text; break;
    case ArgKey::kInSplit: event.in_split = text; break;
    case ArgKey::kOutSplit: event.out_split = text; break;
    case ArgKey::kCommsId: event.comms_id = text; break;
    case ArgKey::kInputDims:
      event.input_dims = text;
      event.has_inputs = true;
      break;
    case ArgKey::kInputTypes: event.input_types = text; break;
    case ArgKey::kConcreteInputs: event.concrete_inputs = text; break;
    case ArgKey::kBlocksPerSm:
      event.blocks_per_sm = text;
      event.has_launch_shape = true;
      break;
    case ArgKey::kWarpsPerSm: event.warps_per_sm = text; break;
    case ArgKey::kOccupancy: event.occupancy = text; break;
    case ArgKey::kGrid:
      event.grid = text;
      event.has_launch_shape = true;
      break;
    case ArgKey::kBlock: event.block = text; break;
    case ArgKey::kCallStack:
      event.call_stack = text;
      event.has_stack |= !text.empty();
      break;
    case ArgKey::kModuleHierarchy:
      event.module_hierarchy = text;
      event.has_stack |= !text.empty();
      break;
    case ArgKey::kInElements:
    case ArgKey::kOutElements:
    case ArgKey::kGroupSize:
    case ArgKey::kAddress:
    case ArgKey::kMemoryBytes:  // these make a record; a text that is not a number must not become a free of one byte
    case ArgKey::kDeviceType: set_number(key, whole(text, 0), event); break;
    default: set_number(key, whole(text, -1), event);
  }
}

}  // namespace stageline::rows
