#include "readers/ascend/scan_table.h"

namespace stageline::ascend {

bool count_scan(PartBuilder& out, std::string_view table, const SqliteRows& rows, const std::string& missing) {
  out.part.event_count += rows.count();
  if (!rows.ok())
    out.notes.add(
        "ascend.damaged_table", Severity::kLoss,
        "table " + std::string(table) + " is damaged after " + std::to_string(rows.count()) + " rows, which were kept",
        {out.part.source});
  if (missing.find('.') != std::string::npos)
    out.notes.add("ascend.missing_column", Severity::kLoss,
                  "a table without a column that it must have was left out: " + missing, {out.part.source});
  return missing.empty();
}

}  // namespace stageline::ascend
