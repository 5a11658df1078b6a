// Returns the values of one slice, column by column.
#pragma once

#include "sql/run_data.h"
#include "sql/table_source.h"

namespace stageline::sql {

enum class SliceColumn : uint8_t {
#define COLUMN(column, ...) column,
#include "sql/slice_columns.def"
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
  constexpr bool kNumbers[] = {
#define COLUMN(column, slices, kernels, number) number,
#include "sql/slice_columns.def"
  };
  return kNumbers[static_cast<size_t>(field)];
}
// Writes the value of a column; `lane` is the slice's.
void show_slice(const RunData& data, size_t part, size_t lane, size_t slice, SliceColumn field, sqlite3_context* out);

}  // namespace stageline::sql
