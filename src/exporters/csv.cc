// CSV: the cells, one per line. Other tables come from the analysis commands, one file each.
#include <algorithm>

#include "base/output_file.h"
#include "exporters/exporter.h"
#include "exporters/table_text.h"

namespace stageline {
namespace {

constexpr size_t kRowsPerWrite = 4096;  // some 300 KB of text

Status write_csv(const ExportInput& input, const std::string& path) {
  const Table* cells = nullptr;
  for (const Table& table : input.tables)
    if (table.name() == "cells") cells = &table;
  if (!cells) return Error{ErrorCode::kUnavailable, "there is no cells table to write as CSV", {path}, ""};
  Result<OutputFile> out = OutputFile::create(path);
  if (!out) return std::move(out).error();
  std::string text;
  append_csv_header(text, *cells);
  for (size_t begin = 0; begin < cells->row_count(); begin += kRowsPerWrite) {
    append_csv_rows(text, *cells, begin, std::min(begin + kRowsPerWrite, cells->row_count()));
    out->write(text);
    text.clear();
  }
  out->write(text);  // the header of a table without rows
  return out->commit();
}

}  // namespace

extern const Exporter csv_exporter;
const Exporter csv_exporter = {"csv", "the cells as comma-separated values", {"csv"}, false, true, write_csv, true};

}  // namespace stageline
