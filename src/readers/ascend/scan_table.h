// Reads a table of a database row by row; what is wrong with it is counted in the part's notes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/sqlite_db.h"
#include "readers/ascend/part_builder.h"

namespace stageline::ascend {

// Counts a scan's rows for the part, and its damage and missing columns in the notes. Returns whether the table exists.
bool count_scan(PartBuilder& out, std::string_view table, const SqliteRows& rows, const std::string& missing);

// Calls use(rows) for every row of a table. Returns false when the table, or a column without '?', does not exist.
// Damage is counted, and what came before it is kept.
template <class Use>
bool scan_table(const SqliteDb& db, PartBuilder& out, std::string_view table,
                std::initializer_list<std::string_view> columns, Use use) {
  std::string missing;
  SqliteRows rows = rows_of(db, table, columns, &missing);
  while (rows.next()) use(rows);
  return count_scan(out, table, rows, missing);
}

}  // namespace stageline::ascend
