// Comma-separated values (RFC 4180), or values separated by another character: quoted fields may hold commas, quotes
// and line ends.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Appends `text` as one field, quoted where that is needed. A spreadsheet takes text that begins with = + @ or a minus
// for a formula; such text, unless it is a number, gets an apostrophe in front, which spreadsheets hide.
void append_csv_field(std::string& out, std::string_view text);

// Moves the next record from the front of `rest` into `fields`. The fields are views into `rest`, or into `storage`
// when a quoted field had to be unescaped. Returns false at the end. A blank line gives one empty field. `*lines` grows
// by the number of line ends passed, so that the caller can name a place.
bool next_csv_record(std::string_view& rest, std::vector<std::string_view>& fields, std::vector<std::string>& storage,
                     int64_t* lines, char separator = ',');

}  // namespace stageline
