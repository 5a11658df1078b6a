// Tables whose rows are in a list: cells, steps, answers of analyses. For "column = value" on whole numbers, an order
// of the rows by that column is made at the first request (4 bytes per row). So joins do not pass over the whole list.
#pragma once

#include <mutex>

#include "model/table.h"
#include "sql/table_source.h"

namespace stageline::sql {

class Rows {
 public:
  virtual ~Rows() = default;
  virtual size_t size() const = 0;
  virtual void show(sqlite3_context* out, size_t row, int column) const = 0;
  // Returns the value of a kInteger column; kNullInteger: unknown.
  virtual int64_t integer(size_t row, int column) const = 0;

  // The rows whose `column` equals `value`: entries [begin, end) of `list`, ascending.
  struct Found {
    const std::vector<uint32_t>* list;
    size_t begin, end;
  };
  Found equal(int column, int64_t value) const;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<std::vector<uint32_t>>> orders_;  // for each column
};

// An argument of a table-valued function, or an option of an analysis: not given, a whole number, or a text.
using Argument = std::variant<std::monostate, int64_t, std::string>;
std::string argument_text(const Argument& argument);  // "" where it is not given

class RowTable : public TableSource {
 public:
  // Makes the rows; an error stops the query.
  using Make = std::function<Result<std::shared_ptr<const Rows>>(const std::vector<Argument>& arguments)>;
  // `make` gets as arguments the values of the columns that are options, in their order.
  RowTable(std::string name, std::string help, std::vector<SqlColumn> columns, Make make);
  Result<std::vector<SqlColumn>> columns() const override { return columns_; }
  void plan(Plan& plan) const override;
  std::unique_ptr<Cursor> open() const override;

 private:
  std::vector<SqlColumn> columns_;
  Make make_;
};

// The plan of both kinds of list tables.
void plan_rows(const std::vector<SqlColumn>& columns, Plan& plan);
std::unique_ptr<Cursor> row_cursor(const std::vector<SqlColumn>& columns, RowTable::Make make);

// Rows [0, size) whose values are given by two functions.
class MadeRows : public Rows {
 public:
  using Show = std::function<void(sqlite3_context* out, size_t row, int column)>;
  using Integer = std::function<int64_t(size_t row, int column)>;
  MadeRows(size_t size, Show show, Integer integer)
      : size_(size), show_(std::move(show)), integer_(std::move(integer)) {}
  size_t size() const override { return size_; }
  void show(sqlite3_context* out, size_t row, int column) const override { show_(out, row, column); }
  int64_t integer(size_t row, int column) const override { return integer_(row, column); }

 private:
  size_t size_;
  Show show_;
  Integer integer_;
};

// Returns a Table as rows. `columns` gives for each SQL column its index in the table; −1 means that it is missing, and
// reading it is an error. Empty: the table's own columns in their order.
std::shared_ptr<const Rows> table_rows(Table table, std::vector<int> columns = {});
std::vector<SqlColumn> columns_of(const Table& table);
std::vector<SqlColumn> columns_of(const TableSpec& spec);  // with its options behind the columns

}  // namespace stageline::sql
