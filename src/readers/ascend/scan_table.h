// A table of a database, row by row, with what is wrong with it counted in the part's notes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/sqlite_db.h"
#include "readers/ascend/part_builder.h"

namespace stageline::ascend {

// What a scan has to say: rows for the part, damage and missing columns for its notes. Whether the table was there.
bool count_scan(PartBuilder& out, std::string_view table, const SqliteRows& rows, const std::string& missing);

// Calls use(rows) for every row of a table; false when the table, or a column without '?', is not there. Damage is
// counted, and what came before it stays.
template <class Use>
bool scan_table(const SqliteDb& db, PartBuilder& out, std::string_view table,
                std::initializer_list<std::string_view> columns, Use use) {
  std::string missing;
  SqliteRows rows = rows_of(db, table, columns, &missing);
  while (rows.next()) use(rows);
  return count_scan(out, table, rows, missing);
}

}  // namespace stageline::ascend
