// Returns the values of one slice, column by column.
#pragma once

#include "sql/run_data.h"
#include "sql/table_source.h"

namespace stageline::sql {

enum class SliceColumn : uint8_t {
  kId,
  kRank,
  kName,
  kNameId,
  kCategory,
  kClass,
  kStart,
  kDur,
  kEnd,
  kSelf,
  kLane,
  kLaneKind,
  kPid,
  kTid,
  kStream,
  kDevice,
  kStep,
  kDepth,
  kParent,
  kLaunch,
  kOp,
  kCorrelation,
  kFileIndex,
  // Columns that only kernels have.
  kCall,
  kCallStart,
  kCallDur,
  kLaunchDelay,
  kOpName,
  kGrid,
  kBlock,
  kRegisters,
  kSharedBytes,
  kOccupancy,
  kBytes,
};

struct SliceColumnSpec {
  SliceColumn field;
  SqlColumn column;
};
const std::vector<SliceColumnSpec>& slice_column_specs();
const std::vector<SliceColumnSpec>& kernel_column_specs();

inline int64_t slice_id(size_t part, size_t slice) { return part << 32 | slice; }

// The value of a time, duration or byte count; kNullInteger: unknown. `lane` is the slice's, used for kSelf only.
int64_t number_of(const RunData& data, size_t part, size_t lane, size_t slice, SliceColumn field);
constexpr bool is_number(SliceColumn field) {
  return field == SliceColumn::kStart || field == SliceColumn::kDur || field == SliceColumn::kEnd ||
         field == SliceColumn::kSelf || field == SliceColumn::kBytes || field == SliceColumn::kCallStart ||
         field == SliceColumn::kCallDur || field == SliceColumn::kLaunchDelay;
}
// Writes the value of a column; `lane` is the slice's.
void show_slice(const RunData& data, size_t part, size_t lane, size_t slice, SliceColumn field, sqlite3_context* out);

}  // namespace stageline::sql
