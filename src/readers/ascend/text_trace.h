// Reads trace_view.json, the whole profile of one rank as a Chrome trace, where the profiler database is missing.
//
//   process "Python"           threads of the framework: operators (cat cpu_op), ProfilerStep#N, Enqueue, Dequeue
//   process "CANN"             threads of the runtime: AscendCL@…, Node@launch, …, one nested in the other
//   process "Ascend Hardware"  threads "Stream 2", …: device tasks, args {"Task Type", "Stream Id", "connection_id"}
//   process "Communication"    ("HCCL" of old) threads "Group 0 Communication": operations; "Plane 0": their transfers
//   process "Overlap Analysis" sums of the others; skipped.
//
//   flows: HostToDevice  a call of CANN → the task that it launched
//          async_npu     an operator → the task that it launched
//          fwdbwd        an operator → its backward
//
// Times are texts of decimal microseconds since the epoch, with or without a tab or quotes around them. The names of
// processes and threads may come after their events, so what a row is gets decided at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/text_interner.h"

namespace stageline::ascend {

inline constexpr uint32_t kNoTraceRow = UINT32_MAX;

enum class ThreadKind : uint8_t {
  kOther,
  kPython,
  kCann,
  kStream,      // of the device
  kOperations,  // "Group 0 Communication"
  kPlane,       // transfers of operations
  kSums,        // Overlap Analysis, which sums up other rows
};

struct TraceThread {
  std::string pid, tid, process, name;
  ThreadKind kind = ThreadKind::kOther;
};

struct TraceRow {
  int64_t start_ns = 0, dur_ns = 0;
  int64_t stream = -1, connection = -1, bytes = -1;  // −1 when not given
  uint32_t name = 0, category = 0, task_type = 0;    // ids of TextTrace::texts
  uint32_t thread = 0;
  uint32_t launch = kNoTraceRow;  // for device rows, the call of CANN that launched it
  uint32_t owner = kNoTraceRow;   // for device rows, the framework's operator that owns it
};

struct TraceTransfer {  // belongs to a row of a plane
  uint32_t row = 0;
  int32_t src_rank = -1, dst_rank = -1;  // ranks within the group
  int64_t bytes = -1, notify = -1;
  uint32_t transport = 0, link = 0;
};

struct TraceOperation {  // belongs to an operation's row
  uint32_t row = 0;
  uint32_t dtype = 0;
  int64_t count = -1;
};

struct TraceOperator {  // belongs to the row of a framework operator
  uint32_t row = 0;
  int64_t sequence_number = -1, forward_thread = -1;
  uint32_t dims = 0, types = 0, stack = 0;
};

struct TextTrace {
  TextInterner texts;
  std::vector<TraceThread> threads;
  std::vector<TraceRow> rows;  // in the file's order, without rows of kSums
  std::vector<TraceTransfer> transfers;
  std::vector<TraceOperation> operations;
  std::vector<TraceOperator> operators;
  std::vector<std::pair<uint32_t, uint32_t>> forward_backward;  // rows
  int64_t events = 0;                                           // events of every kind
};

// Errors: kNotFound, kIo; kBadInput when there is no event. Unusable events are counted: "ascend.trace_event",
// "ascend.trace_cut", "ascend.trace_flow". O(bytes + flows log flows); memory is proportional to the rows.
Result<TextTrace> read_trace_view(const std::string& path, Diagnostics& diagnostics, Progress* progress);

}  // namespace stageline::ascend
