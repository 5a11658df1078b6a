// SQL functions over a run's columns, besides SQLite's own:
//
//   union_ns(start, dur)        aggregate: the time that intervals cover, each nanosecond once
//   both_ns(start, dur, side)   aggregate: the time that intervals of side 0 and of side 1 both cover
//   quantile(x, q)              aggregate: linear between order statistics, as in numpy; median(x) is quantile(x, 0.5)
//   matches(text, expression)   also written text REGEXP expression; expressions are those of base/name_pattern.h
//   short_name(name), ms(ns), pretty(ns)
//
// An interval whose start or duration is NULL does not count. Aggregates without values are NULL.
#pragma once

#include <sqlite3.h>

#include "base/vocabulary.h"

namespace stageline::sql {

struct FunctionHelp {
  const char* call;
  const char* help;
};
const std::vector<FunctionHelp>& function_helps();

// Adds these functions and the bounded ones below to a connection. Returns SQLITE_OK, or SQLite's error code.
int add_functions(sqlite3* db);

// The rights of a query: to read, call functions of a list, and keep temporary tables and views. Everything else is
// refused, and the refusal gives the reason.
// The callback for sqlite3_set_authorizer(). `stopped` is a Stopped, which gets the reason of a refusal.
int authorize(void* stopped, int action, const char* first, const char* second, const char* database,
              const char* trigger);

// SQLite's own functions on texts, with a bound on the time of one call. A call cannot be interrupted, so a query with
// a long text would outlive its timeout.
// Replaces instr, replace, trim, like, glob, printf and format. Returns SQLITE_OK, or SQLite's error code.
int add_bounded_functions(sqlite3* db);

// Returns true, with an error of the call, when a search that compares each byte of one text with each of the other
// would take longer than a second.
bool is_too_much(sqlite3_context* context, size_t a, size_t b);

}  // namespace stageline::sql
