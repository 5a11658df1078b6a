#include "sql/slice_rows.h"

#include <algorithm>

#include "base/number.h"
#include "base/parallel.h"
#include "model/table.h"

namespace stageline::sql {
namespace {

using Field = SliceColumn;
using Type = SqlType;

const SqlColumn kId = {
    "id", Type::kInteger, "",
    "Id of the slice in this run: 2³² × the rank's place among those read + the slice's place within its rank."};
const SqlColumn kRank = {"rank", Type::kInteger, "", "Global rank."};
const SqlColumn kName = {"name", Type::kText, "", "Name, as the source writes it."};
const SqlColumn kClass = {
    "class", Type::kText, "",
    "Class of device work: COMPUTATION, COMMUNICATION, MEMORY or OTHER; NULL for what ran on no device."};
const SqlColumn kStart = {"start_ns", Type::kInteger, "ns",
                          "Start, counted from the run's first slice; on the common clock where clocks were aligned."};
const SqlColumn kDur = {"dur_ns", Type::kInteger, "ns", "Duration, measured on the rank's own clock."};
const SqlColumn kEnd = {"end_ns", Type::kInteger, "ns", "start_ns + dur_ns."};
const SqlColumn kStream = {"stream", Type::kInteger, "",
                           "Number of the stream, as the event says; NULL where it names none."};
const SqlColumn kDevice = {"device", Type::kInteger, "",
                           "Index of the rank's device in its machine; NULL where the source does not say."};
const SqlColumn kStep = {"step", Type::kInteger, "",
                         "Number of the profiler's step that holds it; NULL outside of every step."};
const SqlColumn kOp = {"op_id", Type::kInteger, "", "Id of the operator that owns it; NULL for what ran on no device."};

// The launch call of device work; kNoSliceIndex: unknown.
uint32_t launch_of(const RunData& data, size_t part, size_t slice) {
  const Slices& s = data.trace().parts[part].slices;
  return s.partner.empty() || !data.is_device(part, slice) ? kNoSliceIndex : s.partner[slice];
}

uint32_t operator_of(const RunData& data, size_t part, size_t slice) {
  const Slices& s = data.trace().parts[part].slices;
  return s.parent.empty() || !data.is_device(part, slice) ? kNoSliceIndex : s.parent[slice];
}

void show_id(sqlite3_context* out, size_t part, uint32_t slice) {
  if (slice == kNoSliceIndex) return sqlite3_result_null(out);
  sqlite3_result_int64(out, slice_id(part, slice));
}

int64_t depth_of(const RunData& data, size_t part, size_t slice) {
  int64_t depth = 0;
  for (uint32_t at = data.enclosing(part, slice); at != kNoSliceIndex && at < slice; ++depth) {
    slice = at;  // enclosing slices must stand before, so that a damaged file makes no circle
    at = data.enclosing(part, slice);
  }
  return depth;
}

void show_kernel_fact(const Part& part, uint32_t slice, Field field, const StringPool& names, sqlite3_context* out) {
  const KernelFact* fact = fact_of(part.kernels, slice);
  if (!fact) return sqlite3_result_null(out);
  const auto known = [&](int64_t value) { value < 0 ? sqlite3_result_null(out) : sqlite3_result_int64(out, value); };
  switch (field) {
    case Field::kGrid: return show_text_or_null(out, names.text(fact->grid));
    case Field::kBlock: return show_text_or_null(out, names.text(fact->block));
    case Field::kRegisters: return known(fact->registers);
    case Field::kSharedBytes: return known(fact->shared_bytes);
    default: {
      if (fact->occupancy_percent < 0) return sqlite3_result_null(out);
      sqlite3_result_double(out, decimal_of(fact->occupancy_percent) / 100);
    }
  }
}

int64_t bytes_of(const Part& part, uint32_t slice) {  // kNullInteger: unknown
  int64_t bytes = -1;
  if (const CopyFact* copy = fact_of(part.copies, slice)) bytes = copy->bytes;
  if (const CollectiveFact* collective = fact_of(part.collectives, slice); bytes < 0 && collective)
    bytes = collective->bytes;
  return bytes < 0 ? kNullInteger : bytes;
}

}  // namespace

const std::vector<SliceColumnSpec>& slice_column_specs() {
  static const std::vector<SliceColumnSpec> specs = {
      {Field::kId, kId},
      {Field::kRank, kRank},
      {Field::kName, kName},
      {Field::kNameId, {"name_id", Type::kInteger, "", "Number of the name in this run; names lists them."}},
      {Field::kCategory,
       {"category", Type::kText, "", "Category, as the source spells it; NULL where the source gives none."}},
      {Field::kClass, kClass},
      {Field::kStart, kStart},
      {Field::kDur, kDur},
      {Field::kEnd, kEnd},
      {Field::kSelf,
       {"self_ns", Type::kInteger, "ns", "dur_ns without the time of slices nested in it on the same thread."}},
      {Field::kLane, {"lane", Type::kText, "", "Name of the thread or stream."}},
      {Field::kLaneKind, {"lane_kind", Type::kText, "", "Kind of the lane: host, device or other."}},
      {Field::kPid, {"pid", Type::kText, "", "Process of the lane, as the source writes it."}},
      {Field::kTid, {"tid", Type::kText, "", "Thread of the lane, as the source writes it."}},
      {Field::kStream, kStream},
      {Field::kDevice, kDevice},
      {Field::kStep, kStep},
      {Field::kDepth,
       {"depth", Type::kInteger, "", "Number of slices of the same thread that enclose it; 0 where none does."}},
      {Field::kParent,
       {"parent_id", Type::kInteger, "",
        "Id of the slice that encloses it; for device work, id of the operator that owns it."}},
      {Field::kLaunch,
       {"launch_id", Type::kInteger, "", "Id of the call that launched it; NULL for what ran on no device."}},
      {Field::kOp, kOp},
      {Field::kCorrelation,
       {"correlation", Type::kInteger, "", "Correlation number, which a launch and the work it launched share."}},
      {Field::kFileIndex, {"file_index", Type::kInteger, "", "Place of the slice in the source's own order, from 0."}}};
  return specs;
}

const std::vector<SliceColumnSpec>& kernel_column_specs() {
  static const std::vector<SliceColumnSpec> specs = {
      {Field::kId, kId},
      {Field::kRank, kRank},
      {Field::kName, kName},
      {Field::kClass, kClass},
      {Field::kStart, kStart},
      {Field::kDur, kDur},
      {Field::kEnd, kEnd},
      {Field::kStream, kStream},
      {Field::kDevice, kDevice},
      {Field::kStep, kStep},
      {Field::kCall, {"call_id", Type::kInteger, "", "Id of the call that launched it."}},
      {Field::kCallStart, {"call_start_ns", Type::kInteger, "ns", "Start of the call that launched it."}},
      {Field::kCallDur, {"call_dur_ns", Type::kInteger, "ns", "Duration of the call that launched it."}},
      {Field::kLaunchDelay,
       {"launch_delay_ns", Type::kInteger, "ns",
        "Time from the end of the launching call to the start of the work; 0 where the work started before that end."}},
      {Field::kOp, kOp},
      {Field::kOpName, {"op_name", Type::kText, "", "Name of the operator that owns it."}},
      {Field::kGrid, {"grid", Type::kText, "", "Blocks of the launch, as the source writes them."}},
      {Field::kBlock, {"block", Type::kText, "", "Threads of a block, as the source writes them."}},
      {Field::kRegisters, {"registers", Type::kInteger, "", "Registers that each thread uses."}},
      {Field::kSharedBytes, {"shared_bytes", Type::kInteger, "bytes", "Shared memory that each block uses."}},
      {Field::kOccupancy, {"occupancy_share", Type::kReal, "", "Estimated achieved occupancy, as a share of 1."}},
      {Field::kBytes,
       {"bytes", Type::kInteger, "bytes",
        "Size of what a copy or collective moved; NULL where it is unknown, and for other work."}}};
  return specs;
}

int64_t number_of(const RunData& data, size_t p, size_t l, size_t slice, SliceColumn field) {
  const Slices& s = data.trace().parts[p].slices;
  switch (field) {
    case Field::kStart: return data.time_ns(p, s.start_ns[slice]);
    case Field::kDur: return s.dur_ns[slice];
    case Field::kEnd: return sum_or_limit(data.time_ns(p, s.start_ns[slice]), s.dur_ns[slice]);
    case Field::kSelf: return data.self_ns(p, l, slice);
    case Field::kBytes: return bytes_of(data.trace().parts[p], static_cast<uint32_t>(slice));
    default: break;
  }
  const uint32_t call = launch_of(data, p, slice);
  if (call == kNoSliceIndex) return kNullInteger;
  if (field == Field::kCallStart) return data.time_ns(p, s.start_ns[call]);
  if (field == Field::kCallDur) return s.dur_ns[call];
  return std::max<int64_t>(0, between_ns(s.end_ns(call), s.start_ns[slice]));
}

void show_slice(const RunData& data, size_t p, size_t l, size_t slice, SliceColumn field, sqlite3_context* out) {
  const Trace& trace = data.trace();
  const Part& part = trace.parts[p];
  const Slices& s = part.slices;
  const auto i = static_cast<uint32_t>(slice);
  switch (field) {
    case Field::kId: return show(out, slice_id(p, slice));
    case Field::kRank: return show(out, int64_t{part.rank});
    case Field::kName: return show_text(out, trace.names.text(s.name_id[slice]));
    case Field::kNameId: return show(out, int64_t{s.name_id[slice]});
    case Field::kCategory:
      return show_text_or_null(
          out, s.category_id.empty() ? "" : std::string_view(trace.categories[s.category_id[slice]].text));
    case Field::kClass:
      return show_text_or_null(out, data.is_device(p, slice) ? kernel_class_name(s.class_of(slice)) : "");
    case Field::kStart:
    case Field::kDur:
    case Field::kEnd:
    case Field::kSelf:
    case Field::kCallStart:
    case Field::kCallDur:
    case Field::kLaunchDelay:
    case Field::kBytes: return show_known(out, number_of(data, p, l, slice, field));
    case Field::kLane: return show_text(out, part.lanes[l].name);
    case Field::kLaneKind: {
      const LaneKind kind = part.lanes[l].kind;
      return show_text(out, kind == LaneKind::kHostThread     ? "host"
                            : kind == LaneKind::kDeviceStream ? "device"
                                                              : "other");
    }
    case Field::kPid: return show_text_or_null(out, part.lanes[l].pid);
    case Field::kTid: return show_text_or_null(out, part.lanes[l].tid);
    case Field::kStream:
      if (s.stream_id.empty() || s.stream_id[slice] == 0) return sqlite3_result_null(out);
      return show(out, part.streams[s.stream_id[slice]]);
    case Field::kDevice: return show_known(out, part.device);
    case Field::kStep:
      if (s.step.empty() || s.step[slice] == 0) return sqlite3_result_null(out);
      return show(out, part.steps[s.step[slice] - 1u].number);
    case Field::kDepth: return show(out, depth_of(data, p, slice));
    case Field::kParent: return show_id(out, p, s.parent.empty() ? kNoSliceIndex : s.parent[slice]);
    case Field::kLaunch:
    case Field::kCall: return show_id(out, p, launch_of(data, p, slice));
    case Field::kOp: return show_id(out, p, operator_of(data, p, slice));
    case Field::kCorrelation:
      if (s.correlation.empty() || s.correlation[slice] == kNoCorrelation) return sqlite3_result_null(out);
      return show(out, int64_t{s.correlation[slice]});
    case Field::kFileIndex: return show(out, int64_t{s.file_index[slice]});
    case Field::kOpName: {
      const uint32_t op = operator_of(data, p, slice);
      if (op == kNoSliceIndex) return sqlite3_result_null(out);
      return show_text(out, trace.names.text(s.name_id[op]));
    }
    case Field::kGrid:
    case Field::kBlock:
    case Field::kRegisters:
    case Field::kSharedBytes:
    case Field::kOccupancy: return show_kernel_fact(part, i, field, trace.names, out);
  }
}

}  // namespace stageline::sql
