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

#include <string>
#include <vector>

namespace stageline::sql {

struct FunctionHelp {
  const char* call;
  const char* help;
};
const std::vector<FunctionHelp>& function_helps();

// Most values that quantile() keeps, at 8 bytes each; more are an error.
inline constexpr size_t kMaxQuantileValues = 50'000'000;

int add_functions(sqlite3* db);  // returns SQLITE_OK, or SQLite's code of what went wrong
int add_bounded_functions(sqlite3* db);

// Most pairs of bytes that one call may compare, since a call cannot be interrupted: below a second.
inline constexpr size_t kMaxCompared = 200'000'000;
// Returns true, with an error of the call, when texts of these lengths are beyond it.
bool is_too_much(sqlite3_context* context, size_t a, size_t b);

}  // namespace stageline::sql
