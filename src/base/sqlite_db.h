// SQLite files: other people's, read without touching them, and our own, written whole.
//
// A measurement belongs to its user. `open_read` never writes, locks, migrates or leaves a file beside it: the file is
// opened as immutable, which also works in a folder that may not be written. What that would hide is checked first: a
// writer at work, and changes that lie in a journal beside the file.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "base/sqlite_pages.h"

namespace stageline {

class SqliteDb {
 public:
  // Errors: kNotFound, kIo; kUnavailable when another program is writing to the file at this moment or left a half-done
  // transaction; kBadInput when it is no SQLite file. A write-ahead log that is not merged is said in `notes` as
  // "sqlite.unmerged_log": its rows are not seen.
  static Result<SqliteDb> open_read(const std::string& path, Diagnostics& notes);
  // An existing file, with SQLite's own locks and journal. Errors: as open_read, and kIo when it may not be written.
  static Result<SqliteDb> open_write(const std::string& path);
  // A file that exists (base/output_file.h made it), perhaps empty, to be filled in one go: no journal, no waiting for
  // the disk. A file that is not finished is worthless. Triggers that came with a copy stay silent.
  static Result<SqliteDb> open_new(const std::string& path);

  sqlite3* handle() const { return db_.get(); }
  const std::string& path() const { return path_; }
  // Names of columns in the table's own order; empty when there is no such table or view. Case is SQLite's: ignored.
  std::vector<std::string> columns(std::string_view table) const;
  // A table proper with rows of its own: no view, whose rows may have no end, and no virtual table.
  bool has_table(std::string_view table) const;
  // More rows than a file of this size can hold: damage or malice makes pages that lead to each other.
  int64_t most_rows() const { return most_rows_; }
  // Whether nobody writes to it, so that its pages may be read past SQLite.
  bool is_immutable() const { return is_immutable_; }
  Status run(const std::string& sql) const;
  // The last error of this connection, for `doing` ("reading table TASK").
  Error error(const std::string& doing) const;

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  std::unique_ptr<sqlite3, Close> db_;
  std::string path_;
  int64_t most_rows_ = INT64_MAX;
  bool is_immutable_ = false;
};

// A statement and its rows, or a table read from its pages:  while (rows.next()) use(rows.integer(0));  if (!rows.ok())
// …rows.status()
class SqliteRows {
 public:
  SqliteRows() = default;  // no rows
  // A statement that cannot be prepared gives no rows and an error status.
  SqliteRows(const SqliteDb& db, const std::string& sql);

  // The rows that `pages` reads.
  SqliteRows(const SqliteDb& db, std::unique_ptr<SqlitePages> pages)
      : pages_(std::move(pages)), path_(db.path()), most_(db.most_rows()) {}

  // False after the last row, and as "damaged" after as many as SqliteDb::most_rows().
  bool next();
  int columns() const { return pages_ ? pages_->columns() : sqlite3_column_count(statement_.get()); }
  // Storage class of this row's value: SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT, SQLITE_BLOB, SQLITE_NULL.
  int type(int column) const { return pages_ ? pages_->type(column) : sqlite3_column_type(statement_.get(), column); }
  bool is_null(int column) const { return type(column) == SQLITE_NULL; }
  // 0 for NULL; text is read as a number ("PYTORCH_API" keeps its times as text).
  int64_t integer(int column) const {
    return pages_ ? pages_->integer(column) : sqlite3_column_int64(statement_.get(), column);
  }
  int64_t integer_or(int column, int64_t if_null) const { return is_null(column) ? if_null : integer(column); }
  double real(int column) const {
    return pages_ ? pages_->real(column) : sqlite3_column_double(statement_.get(), column);
  }
  std::string_view text(int column) const;  // until the next call of next()
  // Rows given so far.
  int64_t count() const { return count_; }
  bool ok() const { return !failed_; }
  Status status() const;  // damaged page and the like, with the file's name and the number of rows before

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::unique_ptr<SqlitePages> pages_;  // in place of a statement
  std::string path_;
  Error error_;
  int64_t count_ = 0, most_ = INT64_MAX;
  bool failed_ = false;
};

// All rows of one table, columns by name in the order asked. Versions differ in order and number of columns: a name
// that ends in '?' may be missing and then reads as NULL. Without the table (SqliteDb::has_table), or a column that
// must be there: no rows, ok(), and in `missing` what lacks ("TASK", "TASK.startNs"). `rest`: SQL after the table's
// name, such as "ORDER BY rowid".
SqliteRows rows_of(const SqliteDb& db, std::string_view table, std::initializer_list<std::string_view> columns,
                   std::string* missing = nullptr, std::string_view rest = "");

// Rows into a table; after the first error every call is a no-op.
class SqliteInsert {
 public:
  // "INSERT INTO table VALUES (?, …)" for `columns` values.
  SqliteInsert(const SqliteDb& db, const std::string& table, int columns);

  SqliteInsert& null() { return bound(sqlite3_bind_null(statement_.get(), ++column_)); }
  SqliteInsert& integer(int64_t value) { return bound(sqlite3_bind_int64(statement_.get(), ++column_, value)); }
  SqliteInsert& real(double value) { return bound(sqlite3_bind_double(statement_.get(), ++column_, value)); }
  // `text` must live until next().
  SqliteInsert& text(std::string_view text) {
    return bound(sqlite3_bind_text64(statement_.get(), ++column_, text.data() ? text.data() : "", text.size(),
                                     SQLITE_STATIC, SQLITE_UTF8));
  }
  void next();
  bool ok() const { return !failed_; }
  Status status() const;

 private:
  SqliteInsert& bound(int code);
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  const SqliteDb* db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::string table_;
  Error error_;
  int column_ = 0;
  bool failed_ = false;
};

// "name" as an SQL identifier, quotes doubled, without NULs.
std::string sql_name(std::string_view name);
// 'text' as an SQL string, quotes doubled, without NULs.
std::string sql_text(std::string_view text);

}  // namespace stageline
