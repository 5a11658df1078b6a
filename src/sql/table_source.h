// A table of SQL over a run. Nothing is stored for it; rows come from the run's own columns when SQLite asks.
//
//   SELECT name FROM slices WHERE rank = 3 AND start_ns > 5
//     plan()    SQLite: "rank = ?, start_ns > ?: what of this do you do yourself, and what does it cost then?"
//     open(), Cursor::filter(3, 5), next(), column() …   rows in the table's own order
//
// SQLite checks inexact constraints again, so taking more constraints is never wrong.
#pragma once

#include <sqlite3.h>

#include "base/vocabulary.h"

namespace stageline::sql {

enum class SqlType : uint8_t { kInteger, kReal, kText };
std::string_view type_name(SqlType type);  // "INTEGER", "REAL", "TEXT"

struct SqlColumn {
  std::string name;
  SqlType type = SqlType::kInteger;
  std::string unit;        // "ns", "bytes", ""
  std::string help;        // one sentence
  bool is_option = false;  // SELECT * leaves it out; it is an argument of a function, given by position or by name
};

// "column op value": op is one of SQLITE_INDEX_CONSTRAINT_….
struct Wanted {
  int column = 0;
  uint8_t op = 0;
  bool usable = true;  // its value is known when this table is read, in the order of joins that SQLite is weighing
  bool binary = true;  // texts are compared by bytes
  bool taken = false;  // set by plan(): filter() gets the value
  bool exact = false;  // set by plan(): SQLite need not check it again
};

struct Plan {
  std::vector<Wanted> wanted;
  std::vector<std::pair<int, bool>> order;  // (column, descending)
  uint64_t used = 0;                        // bit c: column c is read; bit 63: some column from 63 on is
  // Set by plan().
  double cost = 1e9;
  int64_t rows = 1'000'000;
  bool ordered = false;  // rows come in this `order`
  bool one_row = false;
  bool impossible = false;  // cannot be read with what is usable, so SQLite must try another order of joins
  int mode = 0;             // passed on to filter()
};

struct Pushed {
  int column = 0;
  uint8_t op = 0;
  sqlite3_value* value = nullptr;
};

class Cursor {
 public:
  virtual ~Cursor() = default;
  // Moves to the first row. An error stops the query and is reported as it is.
  virtual Status filter(int mode, const std::vector<Pushed>& given) = 0;
  virtual bool at_end() const = 0;
  virtual void next() = 0;
  virtual void column(sqlite3_context* out, int column) const = 0;
  virtual int64_t row_id() const = 0;
};

class TableSource {
 public:
  TableSource(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}
  virtual ~TableSource() = default;
  const std::string& name() const { return name_; }
  const std::string& help() const { return help_; }
  // Its columns. Errors: why this run has no such table.
  virtual Result<std::vector<SqlColumn>> columns() const = 0;
  virtual void plan(Plan& plan) const = 0;
  virtual std::unique_ptr<Cursor> open() const = 0;

 private:
  std::string name_, help_;
};

// Why a statement of a connection stopped, in full where SQLite's own message has only a part of it or nothing. It
// outlives the connection.
struct Stopped {
  std::optional<Error> problem;  // reported by a table
  std::string refused;           // why the authorizer refused
  bool spent = false;            // a query left something behind: temporary tables, a count of fetched arguments
  bool aggregating = false;      // the statement is one of aggregate_query()
  bool declaring = false;        // SQLite is being told a table's columns, for which it runs a CREATE TABLE of its own
};

// Makes `source` a table of `db`, which keeps it. Errors: kUnavailable.
Status add_table(sqlite3* db, std::shared_ptr<const TableSource> source, Stopped* stopped);

// ---- values ----

inline void show(sqlite3_context* out, int64_t value) { sqlite3_result_int64(out, value); }
// Writes NULL for an unknown value (kNullInteger, or kUnknown of 32 bits).
void show_known(sqlite3_context* out, int64_t value);
void show_known(sqlite3_context* out, int32_t value);
void show_real(sqlite3_context* out, double value);  // writes NULL for NaN
// For a text that outlives the statement.
inline void show_text(sqlite3_context* out, std::string_view text) {
  sqlite3_result_text64(out, text.data() ? text.data() : "", text.size(), SQLITE_STATIC, SQLITE_UTF8);
}
inline void show_text_or_null(sqlite3_context* out, std::string_view text) {
  if (text.empty()) return sqlite3_result_null(out);
  show_text(out, text);
}
// For a text that does not outlive the statement; it is copied.
inline void show_copy(sqlite3_context* out, std::string_view text) {
  sqlite3_result_text64(out, text.data() ? text.data() : "", text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

// A value as a whole number; nothing where it is none, since then no integer equals it.
std::optional<int64_t> integer_of(sqlite3_value* value);
std::string_view text_of(sqlite3_value* value);
// Narrows [low, high] to the whole numbers for which "x op value" holds, or to more than these. The two only move
// towards each other.
void narrow(uint8_t op, sqlite3_value* value, int64_t& low, int64_t& high);

constexpr bool is_range(uint8_t op) {
  return op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE || op == SQLITE_INDEX_CONSTRAINT_LT ||
         op == SQLITE_INDEX_CONSTRAINT_LE;
}

}  // namespace stageline::sql
