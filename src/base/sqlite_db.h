// SQLite files: those of others, which are read without changing anything, and our own, which are written whole.
//
// Measurements belong to the user. `open_read` never writes, locks, migrates or leaves a file next to the database: the
// file is opened as immutable, which also works in a folder that may not be written. In this mode SQLite does not
// notice a program that is writing, nor changes in a journal next to the file, so both are checked first.
#pragma once

#include <sqlite3.h>

#include "base/diagnostics.h"
#include "base/output_file.h"
#include "base/sqlite_pages.h"

namespace stageline {

// Sets SQLite up, once, before it is first used: memory is counted for each thread, without the lock of SQLite's own
// statistics. Returns the name of a file system for sqlite3_open_v2() on which a temporary file takes at most a quarter
// of the free disk (SQLITE_FULL).
const char* set_up_sqlite();
// Returns the bytes that SQLite holds, of this thread. Only differences have a meaning.
int64_t sqlite_memory();
// While this object lives, SQLite gets at most `bytes` more in this thread (SQLITE_NOMEM).
class SqliteMemoryLimit {
 public:
  explicit SqliteMemoryLimit(int64_t bytes);
  ~SqliteMemoryLimit();
  SqliteMemoryLimit(const SqliteMemoryLimit&) = delete;

 private:
  int64_t before_;
};

class SqliteDb {
 public:
  // Errors: kNotFound, kIo; kUnavailable when another program is writing to the file at this moment or left an
  // unfinished transaction; kBadInput when it is not an SQLite file. When there is a write-ahead log that is not
  // merged, `notes` get "sqlite.unmerged_log", because its rows are not seen.
  static Result<SqliteDb> open_read(const std::string& path, Diagnostics& notes);
  // Opens an existing file, with SQLite's own locks and journal. Errors: those of open_read, and kIo when it may not be
  // written.
  static Result<SqliteDb> open_write(const std::string& path);
  // Opens a file that exists (base/output_file.h made it), perhaps empty, to be filled in one go. It uses no journal
  // and does not wait for the disk, because an unfinished file is worthless. Triggers of a copied database do not run.
  static Result<SqliteDb> open_new(const std::string& path);
  // Does the same for an output that is not committed yet. Errors: kUsage when the half-done change or the log of an
  // earlier database is next to the final name. The next program that opens the new database would apply it.
  static Result<SqliteDb> open_new(const OutputFile& out);

  sqlite3* handle() const { return db_.get(); }
  const std::string& path() const { return path_; }
  // Returns the names of columns in the table's own order; empty when there is no such table or view. As in SQLite,
  // upper and lower case are equal.
  std::vector<std::string> columns(std::string_view table) const;
  // Returns true for a real table with rows of its own. Views, whose rows may never end, and virtual tables do not
  // count.
  bool has_table(std::string_view table) const;
  // Returns an upper bound of a table's row count, for reserving memory: its highest rowid, or 0 if the rowid gives no
  // bound. The bound holds for undamaged files. It is found without reading the rows, and never larger than what a file
  // of this size can hold.
  size_t rows_at_most(std::string_view table) const;
  // Returns a number of rows larger than a file of this size can hold. Damage or malice can make pages that lead to
  // each other without end.
  int64_t max_rows() const { return max_rows_; }
  // Returns true when no program writes to it, so that its pages may be read without SQLite.
  bool is_immutable() const { return is_immutable_; }
  Status run(const std::string& sql) const;
  // Returns the last error of this connection; `doing` describes the action ("reading table TASK").
  Error error(const std::string& doing) const;

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  std::unique_ptr<sqlite3, Close> db_;
  std::string path_;
  int64_t max_rows_ = INT64_MAX;
  bool is_immutable_ = false;
};

// The rows of a statement, or of a table read from its pages:
//   while (rows.next()) use(rows.integer(0));  if (!rows.ok()) …rows.status()
class SqliteRows {
 public:
  SqliteRows() = default;  // no rows
  // A statement that cannot be prepared gives no rows and an error status.
  SqliteRows(const SqliteDb& db, const std::string& sql);

  // Gives the rows that `pages` reads.
  SqliteRows(const SqliteDb& db, std::unique_ptr<SqlitePages> pages)
      : pages_(std::move(pages)), path_(db.path()), most_(db.max_rows()) {}

  // Returns false after the last row. After as many rows as SqliteDb::max_rows() it also returns false, and the file
  // counts as damaged.
  bool next();
  int columns() const { return pages_ ? pages_->columns() : sqlite3_column_count(statement_.get()); }
  // Returns the storage class of this row's value: SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT, SQLITE_BLOB, SQLITE_NULL.
  int type(int column) const { return pages_ ? pages_->type(column) : sqlite3_column_type(statement_.get(), column); }
  bool is_null(int column) const { return pages_ ? pages_->is_null(column) : type(column) == SQLITE_NULL; }
  // 0 for NULL; text is read as a number ("PYTORCH_API" keeps its times as text).
  int64_t integer(int column) const {
    return pages_ ? pages_->integer(column) : sqlite3_column_int64(statement_.get(), column);
  }
  int64_t integer_or(int column, int64_t if_null) const { return is_null(column) ? if_null : integer(column); }
  double real(int column) const {
    return pages_ ? pages_->real(column) : sqlite3_column_double(statement_.get(), column);
  }
  std::string_view text(int column) const;  // valid until the next call of next()
  // Returns the number of rows given so far.
  int64_t count() const { return count_; }
  bool ok() const { return !failed_; }
  Status status() const;  // an error such as a damaged page, with the file's name and the number of rows before it

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::unique_ptr<SqlitePages> pages_;  // used instead of a statement
  std::string path_;
  Error error_;
  int64_t count_ = 0, most_ = INT64_MAX;
  bool failed_ = false;
};

// Returns all rows of one table, with the columns by name in the order asked. Versions of a format differ in order and
// number of columns, so a column whose name ends in '?' may be missing and then reads as NULL. When the table
// (SqliteDb::has_table) or a required column is missing, there are no rows, ok() is true, and `missing` names what is
// missing ("TASK", "TASK.startNs"). `rest` is SQL after the table's name, such as "ORDER BY rowid".
SqliteRows rows_of(const SqliteDb& db, std::string_view table, std::initializer_list<std::string_view> columns,
                   std::string* missing = nullptr, std::string_view rest = "");

// Inserts rows into a table. After the first error, every call does nothing.
class SqliteInsert {
 public:
  // Prepares "INSERT INTO table VALUES (?, …)" for `columns` values.
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

// Returns "name" as an SQL identifier, with quotes doubled and NULs removed.
std::string sql_name(std::string_view name);
// Returns 'text' as an SQL string, with quotes doubled and NULs removed.
std::string sql_text(std::string_view text);

}  // namespace stageline
