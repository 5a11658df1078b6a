// Three text forms of a Table: aligned for people, CSV and JSON for machines. People see scaled values (ms, %, ×) with
// the unit once in the header; machines get the raw values.
#pragma once

#include "base/diagnostics.h"
#include "base/json_writer.h"
#include "model/table.h"

namespace stageline {

// Returns aligned text: a header line (dimmed with `colour`) and the rows, with numbers right-aligned and no rules.
// When the lines would be wider than `width_columns` and the last column is text, that column is wrapped; 0 never
// wraps. An empty table is written as "its title: none".
//
// After `max_rows` rows, a last line says how many more there are. Bytes and FLOPs are shown with units. Times since
// 1970 are counted from `origin_ns`, or from the first time in the table when `origin_ns` is 0, and a last line reports
// that origin. Names of kernels are shortened. Other names, except in the last column, are cut in the middle: to the
// width, or to 60 columns when there is no width. `whole_names` leaves all names as they are. `chinese` translates
// titles and the texts of text columns as far as they are known (table_words.h).
std::string format_table_text(const Table& table, int width_columns, bool colour, size_t max_rows = SIZE_MAX,
                              bool whole_names = false, int64_t origin_ns = 0, bool chinese = false);

// Returns CSV as in RFC 4180, with a header of machine names and "\n" line ends. An unknown value is an empty field.
std::string format_table_csv(const Table& table);
// Writes the same CSV in pieces of some thousand rows.
void write_table_csv(const Table& table, const std::function<void(const std::string& text)>& write);

// Appends {name, title, columns: [{name, title, type, unit, help}], rows: [{column: value, …}]}. An unknown value is
// null. `flush`, if given, is called from time to time with the writer, so that the finished text can be handed over.
void append_table_json(JsonWriter& json, const Table& table, const std::function<void(JsonWriter&)>& flush = {});

// Appends the same for a page, which shows it. It has at most `max_rows` rows from `first_row` on, each as an array in
// the order of the columns; "row_count" is the number of all rows. Texts of over 16 KiB are cut. Numbers of a page hold
// 53 bits, so times are counted from "origin_ns" (text), the same origin as in format_table_text(); "0" means that
// times are not shifted. A table with at least kMinRowsApart rows writes them to `apart` if that is given. In place of
// "rows" the page then has "rows_at": [position in that text, bytes, number of rows].
inline constexpr size_t kMinRowsApart = 500;
struct RowsApart {
  struct Place {
    uint64_t key_at = 0, key_end = 0;  // position of "rows_at":[…] in the page's JSON
    uint64_t rows_at = 0, bytes = 0;   // position and length in `text`
  };
  std::string text;
  std::vector<Place> places;  // in their order in the page and in `text`
};
void append_table_page(JsonWriter& json, const Table& table, size_t max_rows, int64_t origin_ns, size_t first_row = 0,
                       RowsApart* apart = nullptr);

// Writes a member that holds {name, severity, count, message} of each note.
void append_notes(JsonWriter& json, const Diagnostics& notes);

}  // namespace stageline
