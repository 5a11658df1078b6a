#include "readers/ascend/text_trace.h"
#include "readers/common/number_map.h"
#include "readers/common/range_message.h"

namespace stageline::ascend {
namespace {

// Finds the kind of a device stream's task from its "Task Type" (source: the task types in the profiler's own tables).
RowKind stream_kind(std::string_view type, std::string_view name) {
  if (mentions(type, "MEMCPY") || type == "SDMA_SQE") return RowKind::kMemcpy;
  if (mentions(type, "MEMSET")) return RowKind::kMemset;
  if (type == "MsTx" || type == "MSTX") return RowKind::kDeviceRange;
  if (type == "HCCL" || type == "COMMUNICATION") return RowKind::kTransfer;
  static constexpr std::string_view kKernels[] = {"AI_CORE", "AI_VECTOR_CORE", "AI_CPU", "MIX_",     "KERNEL_",
                                                  "AIV_SQE", "DSA_SQE",        "AICORE", "AIVECTOR", "DVPP"};
  for (const std::string_view kernel : kKernels)
    if (type.starts_with(kernel)) return RowKind::kKernel;
  // Custom operators have the type "Other": the profiler's own Overlap Analysis counts them as computing. Waits and
  // records of events have names like their types, in capitals (EVENT_WAIT).
  const bool event =
      mentions(name, "EVENT") || mentions(name, "Event") || mentions(name, "NOTIFY") || mentions(name, "Notify");
  if (type == "Other" || type == "OTHER") return event ? RowKind::kDeviceSync : RowKind::kKernel;
  return type.empty() || type == "N/A" ? RowKind::kKernel : RowKind::kDeviceSync;
}

RowKind host_kind(const TraceThread& thread, std::string_view category, std::string_view name) {
  if (thread.kind == ThreadKind::kCann) return RowKind::kCannApi;
  if (mentions(category, "mstx") || mentions(thread.process, "mstx") || mentions(thread.process, "MSTX"))
    return RowKind::kRange;
  if (thread.process == "Python GC") return RowKind::kGarbage;
  if (category == "python_function") return RowKind::kPython;
  if (category == "cpu_op" && !name.starts_with("ProfilerStep#")) return RowKind::kOperator;
  return RowKind::kAnnotation;
}

class Slicer {
 public:
  Slicer(const TextTrace& trace, const ProcessGroups& groups, PartBuilder& builder,
         std::vector<OperationRow>& operations, RowsByStart* kernels)
      : trace_(trace), groups_(groups), builder_(builder), operations_(operations), kernels_(kernels) {}

  OperationLinks add() {
    texts_.reserve(trace_.texts.size());
    for (uint32_t t = 0; t < trace_.texts.size(); ++t) texts_.push_back(builder_.text(trace_.texts.text(t)));
    at_.assign(trace_.rows.size(), kNoRow);
    operation_.assign(trace_.rows.size(), SIZE_MAX);
    add_rows();
    add_facts();
    join();
    transfers();
    return std::move(links_);
  }

 private:
  std::string_view text(uint32_t id) const { return trace_.texts.text(id); }

  int64_t number(const std::string& text) { return parse_int(text).value_or(0); }

  uint32_t lane_of(const TraceThread& thread, const TraceRow& row) {
    if (thread.kind == ThreadKind::kStream) {
      int64_t stream = row.stream;
      if (stream < 0 && thread.name.starts_with("Stream "))
        stream = parse_int(std::string_view(thread.name).substr(7)).value_or(-1);
      return stream >= 0 ? builder_.stream_lane(0, stream) : builder_.named_stream_lane(0, "device");
    }
    if (thread.kind == ThreadKind::kPlane) return builder_.named_stream_lane(0, thread.name + " (" + thread.tid + ")");
    return builder_.host_lane(number(thread.pid), number(thread.tid));
  }

  void add_rows() {
    std::vector<uint32_t> lane(trace_.threads.size(), UINT32_MAX);
    for (size_t r = 0; r < trace_.rows.size(); ++r) {
      const TraceRow& row = trace_.rows[r];
      const TraceThread& thread = trace_.threads[row.thread];
      const int64_t end = row.start_ns + row.dur_ns;
      if (thread.kind == ThreadKind::kOperations) {
        operation_[r] = operations_.size();
        operations_.push_back({.name = std::string(text(row.name)), .start_ns = row.start_ns, .dur_ns = row.dur_ns});
        continue;
      }
      const bool stream = thread.kind == ThreadKind::kStream;
      const RowKind kind = stream                              ? stream_kind(text(row.task_type), text(row.name))
                           : thread.kind == ThreadKind::kPlane ? RowKind::kTransfer
                                                               : host_kind(thread, text(row.category), text(row.name));
      if (stream || lane[row.thread] == UINT32_MAX) lane[row.thread] = lane_of(thread, row);
      uint32_t name = texts_[row.name];
      RangeText range;
      if (kind == RowKind::kRange) {
        range = parse_range_message(text(row.name));
        name = builder_.text(range.name);
      }
      at_[r] = builder_.add(lane[row.thread], kind, row.start_ns, end, name, fold_number(row.connection));
      if (at_[r] == kNoRow) continue;
      if (kind == RowKind::kKernel && kernels_ != nullptr) (*kernels_)[row.start_ns].push_back({at_[r], name});
      if (kind == RowKind::kRange) {
        RangeFact fact{.slice = at_[r],
                       .message = texts_[row.name],
                       .domain = builder_.text("default"),
                       .micro_batch = range.micro_batch,
                       .chunk = range.chunk,
                       .stage = range.stage,
                       .step = range.step};
        builder_.ranges.push_back(fact);
      }
      if ((kind == RowKind::kMemcpy || kind == RowKind::kMemset) && row.bytes >= 0)
        builder_.copies.push_back({.slice = at_[r], .bytes = row.bytes});
    }
  }

  void add_facts() {
    for (const TraceOperator& from : trace_.operators) {
      const uint32_t at = at_[from.row];
      if (at == kNoRow) continue;
      if (from.sequence_number >= 0) {
        OperatorFact fact;
        fact.slice = at;
        fact.sequence_number = from.sequence_number;
        fact.forward_thread = static_cast<int32_t>(std::clamp<int64_t>(from.forward_thread, -1, INT32_MAX));
        builder_.operators.push_back(fact);
      }
      if (from.dims != 0)
        builder_.inputs.push_back({.slice = at, .dims = texts_[from.dims], .types = texts_[from.types]});
      if (from.stack != 0) builder_.stacks.push_back({.slice = at, .stack = texts_[from.stack]});
    }
    for (const TraceOperation& from : trace_.operations) {
      if (operation_[from.row] == SIZE_MAX) continue;
      operations_[operation_[from.row]].dtype = texts_[from.dtype];
      operations_[operation_[from.row]].count = from.count;
    }
  }

  // Follows the arrows: which call launched a row, and which operator owns it.
  void join() {
    // At level 0 no calls of CANN are recorded: the operator is what launched the work.
    const bool calls =
        std::ranges::any_of(trace_.threads, [](const TraceThread& thread) { return thread.kind == ThreadKind::kCann; });
    for (size_t r = 0; r < trace_.rows.size(); ++r) {
      const TraceRow& row = trace_.rows[r];
      const uint32_t owner = row.owner == kNoTraceRow ? kNoRow : at_[row.owner];
      const uint32_t launch = row.launch != kNoTraceRow ? at_[row.launch] : calls ? kNoRow : owner;
      if (operation_[r] != SIZE_MAX) {
        if (launch != kNoRow) links_.launches.emplace_back(operation_[r], launch);
        if (owner != kNoRow) links_.owners.emplace_back(operation_[r], owner);
      } else if (at_[r] != kNoRow) {
        if (launch != kNoRow) builder_.pair(launch, at_[r]);
        if (owner != kNoRow) builder_.own(at_[r], owner);
      }
    }
    for (const auto& [from, to] : trace_.forward_backward)
      if (at_[from] != kNoRow && at_[to] != kNoRow) builder_.link(at_[from], at_[to], SliceLinkKind::kForwardBackward);
  }

  // A plane belongs to the last thread of operations before it in its process; a transfer belongs to the operation of
  // that thread which contains its start.
  void transfers() {
    std::map<std::pair<std::string, int64_t>, uint32_t> order;  // (process, number) → thread
    for (uint32_t t = 0; t < trace_.threads.size(); ++t)
      if (trace_.threads[t].kind == ThreadKind::kPlane || trace_.threads[t].kind == ThreadKind::kOperations)
        order[{trace_.threads[t].pid, number(trace_.threads[t].tid)}] = t;
    std::vector<uint32_t> operations_of(trace_.threads.size(), UINT32_MAX);
    uint32_t last = UINT32_MAX;
    std::string pid;
    for (const auto& [key, thread] : order) {
      if (key.first != pid) last = UINT32_MAX;
      pid = key.first;
      if (trace_.threads[thread].kind == ThreadKind::kOperations) last = thread;
      operations_of[thread] = last;
    }
    std::vector<std::vector<uint32_t>> rows_of(trace_.threads.size());
    for (uint32_t r = 0; r < trace_.rows.size(); ++r)
      if (operation_[r] != SIZE_MAX) rows_of[trace_.rows[r].thread].push_back(r);
    for (std::vector<uint32_t>& rows : rows_of)
      sort_stably(rows, {}, [&](uint32_t a) { return trace_.rows[a].start_ns; });
    for (const TraceTransfer& from : trace_.transfers) {
      const TraceRow& row = trace_.rows[from.row];
      if (at_[from.row] == kNoRow || trace_.threads[row.thread].kind != ThreadKind::kPlane) continue;
      TransferFact fact{.slice = at_[from.row],
                        .op = kNoSliceIndex,
                        .task = texts_[row.name],
                        .transport = texts_[from.transport],
                        .link = texts_[from.link],
                        .bytes = from.bytes,
                        .notify = from.notify};
      const std::string& plane = trace_.threads[row.thread].name;
      if (plane.starts_with("Plane "))
        fact.plane = static_cast<int32_t>(
            std::clamp<int64_t>(parse_int(std::string_view(plane).substr(6)).value_or(-1), -1, INT32_MAX));
      const uint32_t operation = operation_at(operations_of[row.thread], rows_of, row.start_ns);
      set_ranks(from, operation, fact);
      if (operation != UINT32_MAX)
        links_.transfers.push_back({operation_[operation], at_[from.row], builder_.transfers.size()});
      builder_.transfers.push_back(fact);
    }
  }

  uint32_t operation_at(uint32_t thread, const std::vector<std::vector<uint32_t>>& rows_of, int64_t time_ns) const {
    if (thread == UINT32_MAX) return UINT32_MAX;
    const std::vector<uint32_t>& rows = rows_of[thread];
    const auto after = std::upper_bound(rows.begin(), rows.end(), time_ns,
                                        [&](int64_t at, uint32_t row) { return at < trace_.rows[row].start_ns; });
    if (after == rows.begin()) return UINT32_MAX;
    const TraceRow& row = trace_.rows[*(after - 1)];
    return time_ns <= row.start_ns + row.dur_ns ? *(after - 1) : UINT32_MAX;
  }

  void set_ranks(const TraceTransfer& from, uint32_t operation, TransferFact& fact) const {
    fact.src_rank = from.src_rank;
    fact.dst_rank = from.dst_rank;
    if (operation == UINT32_MAX) return;
    const auto name = parse_operation_name(text(trace_.rows[operation].name));
    const ProcessGroup* const group = name ? groups_.find_by_digits(name->digits) : nullptr;
    if (group == nullptr || group->ranks.empty()) return;
    for (int32_t* rank : {&fact.src_rank, &fact.dst_rank})
      if (*rank >= 0) *rank = static_cast<size_t>(*rank) < group->ranks.size() ? group->ranks[*rank] : -1;
  }

  const TextTrace& trace_;
  const ProcessGroups& groups_;
  PartBuilder& builder_;
  std::vector<OperationRow>& operations_;
  RowsByStart* kernels_;
  std::vector<uint32_t> texts_;    // text of the trace → of the builder
  std::vector<uint32_t> at_;       // row of the trace → of the builder
  std::vector<size_t> operation_;  // row of the trace → operation
  OperationLinks links_;
};

}  // namespace

OperationLinks add_trace_slices(const TextTrace& trace, const ProcessGroups& groups, PartBuilder& builder,
                                std::vector<OperationRow>& operations, RowsByStart* kernels) {
  return Slicer(trace, groups, builder, operations, kernels).add();
}

void link_operations(const OperationLinks& links, const std::vector<OperationRow>& operations, PartBuilder& builder) {
  for (const auto& [operation, launch] : links.launches)
    if (operations[operation].row != kNoRow) builder.pair(launch, operations[operation].row);
  for (const auto& [operation, owner] : links.owners)
    if (operations[operation].row != kNoRow) builder.own(operations[operation].row, owner);
  for (const OperationLinks::Transfer& transfer : links.transfers)
    if (operations[transfer.operation].row != kNoRow)
      builder.transfers[transfer.fact].op = operations[transfer.operation].row;
}

}  // namespace stageline::ascend
