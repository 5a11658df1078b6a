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

#include <vector>

namespace stageline::sql {

struct FunctionHelp {
  const char* call;
  const char* help;
};
const std::vector<FunctionHelp>& function_helps();

// Adds these functions and those of sql/bounded_functions.h to a connection. Returns SQLITE_OK, or SQLite's error code.
int add_functions(sqlite3* db);

}  // namespace stageline::sql
