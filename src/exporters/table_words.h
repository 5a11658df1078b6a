// A table's words in the reader's language: titles, names of columns, and the texts of text columns. English texts are
// those that the table declares. Sentences that an analysis made in both languages (words.json) are carried by the
// table; titles, names of columns and fixed words are looked up in base/chinese.
#pragma once

#include "base/chinese.h"
#include "base/diagnostics.h"
#include "base/json_writer.h"
#include "model/table.h"

namespace stageline {

std::string table_title(const Table& table, bool chinese);
std::string column_title(const ColumnSpec& spec, bool chinese);
// Returns the text of a cell in Chinese, or the text itself when no translation is known. Names (of kernels, operators,
// files) are never translated.
std::string cell_in_chinese(const Table& table, const ColumnSpec& spec, const std::string& text);
// Returns true when a text column holds names rather than words: its own name contains "name" or "kernel".
bool holds_names(const ColumnSpec& spec);

// Writes what a page needs, because a page has no dictionary. "sentences" is [[English, Chinese], …]: titles, texts of
// the first `max_rows` rows of text columns, and `notes`. Each appears once, and only when its translation is known.
// Names are written next to them under their keys: "table.NAME", "column.NAME", "value.TABLE.COLUMN.TEXT", "flaw.NAME".
void write_sentences(JsonWriter& json, const std::vector<Table>& tables, const Diagnostics& notes, size_t max_rows);

// Readable names of C++ kernels: "elementwise_kernel<4> · AddFunctor" instead of hundreds of characters. The report
// page shortens names by the same rules. (short_kernel_name of model/slice_facts.h does it as HTA does.)
// Returns the name without "void", at::native::, template arguments and parameters. Names of generic kernels keep the
// functor that identifies them. Names that are not C++ signatures are returned as they are. Takes O(length).
std::string kernel_label(std::string_view name);

}  // namespace stageline
