// The columns of a table of operations, found by the names in its first line.
#pragma once

#include "base/vocabulary.h"

namespace stageline::op_table {

enum class Column : uint8_t {
#define COLUMN(column, ...) column,
#include "readers/op_table/columns.def"
  kColumnCount
};
inline constexpr size_t kColumnCount = static_cast<size_t>(Column::kColumnCount);

struct Columns {
  static constexpr int kAbsent = -1;
  char separator = ',';
  ByEnum<Column, int, kColumnCount> at;               // position in the row
  ByEnum<Column, int, kColumnCount> unit_ns_log10{};  // units of the three times
  std::vector<std::string> seen;                      // every name in the header
  std::vector<std::string> unknown;                   // names that have no meaning here
  std::vector<std::string> repeated;                  // second columns with the same meaning; the first one counts

  int of(Column column) const { return at[column]; }
  bool has(Column column) const { return of(column) != kAbsent; }
  int unit(Column column) const { return unit_ns_log10[column]; }
};

// Reads a header line. Names are separated by commas, semicolons or tabs: by that of these with which most are known.
// Never fails; missing_columns() says what is missing.
Columns parse_header(std::string_view line);

// Returns in words what the table lacks to be a table of operations; "" when nothing.
std::string missing_columns(const Columns& columns);

// Counts the recognised columns of the kinds that matter: how much the header looks like a table of operations.
int recognised(const Columns& columns);

}  // namespace stageline::op_table
