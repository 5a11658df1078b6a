// One Table, three texts: aligned for people, CSV and JSON for machines. People see scaled values
// (ms, %, ×) with the unit once in the header; machines get the raw ones.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "model/table.h"

namespace stageline {

// Aligned text, every row of it: a header line (dimmed with `colour`), numbers right-aligned, no
// rules. When the lines would be wider than `width_columns` and the last column is text, that
// column is wrapped; 0 never wraps. An empty table is "its title: none".
// `most_rows`: the rest is counted in a last line. Bytes and FLOPs have units, times since 1970 count from `origin_ns`,
// without one from the first of the table (a last line says from when), names of kernels are short and other names of a
// column before the last cut in the middle: to the width, without one to 60 columns; `whole_names` leaves them as they
// are. `chinese`: titles, and what text columns say, as far as they are known (table_words.h).
std::string format_table_text(const Table& table, int width_columns, bool colour, size_t most_rows = SIZE_MAX,
                              bool whole_names = false, int64_t origin_ns = 0, bool chinese = false);

// RFC 4180 with a header of machine names and "\n" line ends; an unknown value is an empty field.
std::string format_table_csv(const Table& table);
// The same, some thousand rows at a time.
void write_table_csv(const Table& table, const std::function<void(const std::string& text)>& write);

// {name, title, columns: [{name, title, type, unit, help}], rows: [{column: value, …}]}; an unknown
// value is null. `flush`, if given, is called now and then with the writer, to move text out.
void append_table_json(JsonWriter& json, const Table& table, const std::function<void(JsonWriter&)>& flush = {});

// The same for a page, which shows it: at most `most_rows` rows from `first_row` on, all counted in "row_count", a row
// as an array in the order of the columns. Numbers of a page hold 53 bits: times count from "origin_ns" (text), which
// is what format_table_text() lets them count from; "0": as they are. `apart`, if given, gets the rows of a table that
// has kLeastRowsApart of them, and the page "rows_at": [where they begin in it, bytes, rows] in place of "rows".
inline constexpr size_t kLeastRowsApart = 500;
struct RowsApart {
  struct Place {
    uint64_t key_at = 0, key_end = 0;  // of "rows_at":[…] in the page's JSON
    uint64_t rows_at = 0, bytes = 0;   // in `text`
  };
  std::string text;
  std::vector<Place> places;  // in the order of both
};
void append_table_page(JsonWriter& json, const Table& table, size_t most_rows, int64_t origin_ns, size_t first_row = 0,
                       RowsApart* apart = nullptr);

}  // namespace stageline
