#include "readers/ascend/scan_table.h"

#include "readers/ascend/problems.h"

namespace stageline::ascend {

bool count_scan(PartBuilder& out, std::string_view table, const SqliteRows& rows, const std::string& missing) {
  out.part.event_count += rows.count();
  if (!rows.ok())
    out.notes.add(problem::ascend_damaged_table, Args().set("table", std::string(table)).count("rows", rows.count()),
                  {out.part.source});
  if (missing.find('.') != std::string::npos)
    out.notes.add(problem::ascend_missing_column, Args().set("missing", missing), {out.part.source});
  return missing.empty();
}

}  // namespace stageline::ascend
