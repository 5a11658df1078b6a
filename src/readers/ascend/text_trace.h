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

#include "readers/ascend/find_ranks.h"
#include "readers/ascend/text_communication.h"

namespace stageline::ascend {

// Makes slices of communication operations, from any text export that contains them.
struct OperationRow {  // a row of kernel_details.csv or trace_view.json
  std::string name;    // "hcom_allReduce__377_4_1"
  int64_t step = -1;
  int64_t start_ns = 0, dur_ns = 0;
  int64_t device = 0;
  uint32_t dtype = 0;     // id of the builder's texts
  int64_t count = -1;     // number of elements
  uint32_t row = kNoRow;  // set by add_operations(): the operation's row in the builder
};

// Makes one lane per group and one slice per operation, with a CollectiveFact each. `rows` have times that were
// measured on the device; operations that only `sums` has are added where it says when they began. The group of a row
// is the one that `sums` gives for its name, else the one whose three digits the name contains. Both ends of a message
// are known where the matrix names one link for it, or where the group has two members.
void add_operations(std::vector<OperationRow>& rows, const CommunicationSums& sums, const ProcessGroups& groups,
                    PartBuilder& builder);

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

// Makes slices and facts of one rank from the rows of trace_view.json.
struct KernelAt {
  uint32_t row = 0, name = 0;  // ids of the builder
};
using RowsByStart = std::unordered_map<int64_t, std::vector<KernelAt>>;

struct OperationLinks {
  struct Transfer {
    size_t operation = 0;  // index into `operations`
    uint32_t row = 0;      // row of the builder
    size_t fact = 0;       // index into the builder's transfers
  };
  std::vector<std::pair<size_t, uint32_t>> launches, owners;  // operation → row of the builder
  std::vector<Transfer> transfers;
};
// Adds everything but operations. These go to `operations`, because the sums know their groups. `kernels` (optional)
// receives the kernels' rows in order of start. Which call launched an operation, and which transfers belong to it, is
// added by link_operations() after add_operations() has given every operation a row.
OperationLinks add_trace_slices(const TextTrace& trace, const ProcessGroups& groups, PartBuilder& builder,
                                std::vector<OperationRow>& operations, RowsByStart* kernels);
void link_operations(const OperationLinks& links, const std::vector<OperationRow>& operations, PartBuilder& builder);

// Reads kernel_details.csv: what ran on one device, one row per kernel, with communication operations among them.
//
//   Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),…
//
// Columns are found by name, since which ones exist, and in which order, depends on version, level and options. Times
// are decimal texts of microseconds with more digits than a double holds, often followed by a tab (source: the field
// tables in Ascend's documentation of kernel_details.csv and op_summary).
struct KernelRow {
  int64_t start_ns = 0, dur_ns = 0;                        // start counts from the epoch
  int64_t step = -1, stream = -1, device = -1, task = -1;  // −1 when not given
  int64_t blocks = -1;                                     // "Block Dim" or "Block Num"
  uint32_t name = 0, type = 0, core = 0;                   // ids of KernelTable::texts, 0 when not given
  uint32_t shapes = 0, dtypes = 0;
  bool communication = false;
};

struct KernelTable {
  TextInterner texts;
  std::vector<KernelRow> rows;  // in the file's order
  int64_t lost = 0;             // how many lines could not be used
};

// Errors: kNotFound, kIo; kBadInput when there is no column of names, starts or durations. Lines that are cut, have a
// quote too many, or have a time that is invalid or runs backwards are counted as "ascend.kernel_line". O(bytes).
Result<KernelTable> read_kernel_details(const std::string& path, Diagnostics& diagnostics, Progress* progress);

// True when a row with these texts is a communication operation, by its core ("HCCL", "COMMUNICATION") or its name.
bool is_communication_kernel(std::string_view name, std::string_view core);

// Reads one rank of an Ascend profile from its text exports, where the profiler database is missing; and reads the
// profiler's own sums, which also exist next to a database.
//
//   trace_view.json ─────── all slices ──┐  (kernel_details.csv then adds shapes)
//   kernel_details.csv ──── kernels ─────┤→ PartBuilder
//   analysis.db, else communication.json ┘  operations of communication: groups, bytes; slices where no other file has
//                                            them
//   analysis.db, else step_trace_time.csv          → Part::step_summaries
//   analysis.db, else communication_matrix.json    → Part::link_summaries
//
// docs/formats/ascend-text.md says what is taken from which file.

// Flaws are counted in the notes; so is a file that cannot be read at all ("ascend.unreadable_text"), as long as
// another can. Error: kBadInput, with the first reason, when none can be read.
RankPart read_rank_text(const RankFiles& files, const ReadOptions& options);

// Adds step and link summaries to a rank whose slices come from a database. It never fails; flaws are counted in
// `notes`.
void add_summaries(const RankFiles& files, Part& part, Diagnostics& notes);

}  // namespace stageline::ascend
