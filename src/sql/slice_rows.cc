#include "sql/slice_rows.h"

#include "sql/row_table.h"

namespace stageline::sql {
namespace {

using Field = SliceColumn;

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

struct Having {
  Field field;
  bool slices, kernels;
};
constexpr Having kColumns[] = {
#define COLUMN(column, slices, kernels, number) {Field::column, slices, kernels},
#include "sql/slice_columns.def"
};

std::vector<SliceColumnSpec> specs_of(std::string_view table, bool Having::* has) {
  std::vector<SliceColumnSpec> specs;
  const std::vector<SqlColumn> columns = columns_of(declared_table(table));
  for (const Having& column : kColumns) {
    if (!(column.*has)) continue;
    specs.push_back({column.field, columns[specs.size()]});
    if (column.field == Field::kBytes || column.field == Field::kSharedBytes) specs.back().column.unit = "bytes";
  }
  return specs;
}

}  // namespace

const std::vector<SliceColumnSpec>& slice_column_specs() {
  static const std::vector<SliceColumnSpec> specs = specs_of("sql/slices", &Having::slices);
  return specs;
}

const std::vector<SliceColumnSpec>& kernel_column_specs() {
  static const std::vector<SliceColumnSpec> specs = specs_of("sql/kernels", &Having::kernels);
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
