// SQLite's own functions on texts, with a bound on the time of one call. A call cannot be interrupted, so a query with
// a long text would outlive its timeout.
#pragma once

#include <sqlite3.h>

#include <cstddef>

namespace stageline::sql {

// Replaces instr, replace, trim, like, glob, printf and format. Returns SQLITE_OK, or SQLite's error code.
int add_bounded_functions(sqlite3* db);

// Returns true, with an error of the call, when a search that compares each byte of one text with each of the other
// would take longer than a second.
bool is_too_much(sqlite3_context* context, size_t a, size_t b);

}  // namespace stageline::sql
