// Writes the cells as CSV, one per line. The analysis commands write other tables, one file each.
#include "base/output_file.h"
#include "exporters/exporter.h"
#include "exporters/table_text.h"

namespace stageline {

Status write_csv(const ExportInput& input, const std::string& path) {
  const Table* cells = nullptr;
  for (const Table& table : input.tables)
    if (table.name() == "cells") cells = &table;
  if (!cells) return make_error(ErrorCode::kUnavailable, "there is no cells table to write as CSV", "", {path});
  TRY(out, OutputFile::create(path));
  write_table_csv(*cells, [&](const std::string& text) { out->write(text); });
  return out->commit();
}

}  // namespace stageline
