// A table's words in the reader's language: titles, names of columns, and what text columns say. English is as
// declared; Chinese is looked up (base/chinese), and sentences that an analysis wrote in both languages are the table's
// own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/json_writer.h"
#include "model/table.h"

namespace stageline {

std::string table_title(const Table& table, bool chinese);
std::string column_title(const ColumnSpec& spec, bool chinese);
// Text of a cell in Chinese; itself where nobody knows better. Names (of kernels, operators, files) are never looked
// up.
std::string cell_in_chinese(const Table& table, const ColumnSpec& spec, const std::string& text);
// Whether a text column holds names rather than words: "name", "kernel" in its own name.
bool holds_names(const ColumnSpec& spec);

// For a page, which has no dictionary: "sentences": [[English, Chinese], …] of titles, of what the first `most_rows`
// rows of text columns say and of `notes`, each once, those that are known; beside them names under their keys:
// "table.NAME", "column.NAME", "value.TABLE.COLUMN.TEXT", "flaw.NAME".
void write_sentences(JsonWriter& json, const std::vector<Table>& tables, const Diagnostics& notes, size_t most_rows);

}  // namespace stageline
