// The rows of one table of an SQLite file, read from its pages in order of rowid. SQLite's own machine spends some 300
// ns on a row of twenty columns; a profile has millions of rows and is read once, from end to end.
//
//   file = pages of one size                      interior page  [child, key] [child, key] … right child
//   table = a tree of pages, rows in the leaves   leaf page      [payload length, rowid, payload] …
//   payload = header (length, a type a column) and the values one after the other; what is too long for its page goes
//   on in a chain of overflow pages
//
// The file format is SQLite's own documentation of it (https://www.sqlite.org/fileformat2.html). Only for files that
// nobody writes to (SqliteDb::open_read), and for plain tables: what is not plain is left to SQLite itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

class SqlitePages {
 public:
  // A column that is asked for, as the table's declaration has it.
  struct Column {
    int place = -1;         // in the table's own order; −1: not there, reads as NULL
    bool is_rowid = false;  // INTEGER PRIMARY KEY: the value stands beside the record
    bool is_real = false;   // REAL: whole numbers are stored as integers and are real all the same
  };

  // The rows of the table whose first page is `root`. Null where the file is not of the plain kind: texts in UTF-16,
  // a table without rowid, a header that this reader does not know.
  static std::unique_ptr<SqlitePages> open(const std::string& path, uint32_t root, std::vector<Column> columns);
  ~SqlitePages();
  SqlitePages(const SqlitePages&) = delete;
  SqlitePages& operator=(const SqlitePages&) = delete;

  // False after the last row, and where the pages make no sense: is_damaged().
  bool next();
  bool is_damaged() const { return is_damaged_; }

  // As sqlite3_column_type, _int64, _double and _text have them; texts live until the next call of next().
  int type(int column) const;
  int64_t integer(int column) const {
    const Value& value = values_[static_cast<size_t>(column)];
    return value.type <= kLastInteger ? whole(value) : converted_integer(value);
  }
  double real(int column) const;
  std::string_view text(int column) const;
  int columns() const { return static_cast<int>(columns_.size()); }

 private:
  // A value of the row as its record has it; `type`: the record's serial type.
  struct Value {
    uint64_t type = 0;
    const uint8_t* bytes = nullptr;
  };
  static constexpr uint64_t kLastInteger = 6;  // 1 … 6: integers of 1, 2, 3, 4, 6 and 8 bytes; 0: NULL
  struct Interior {
    std::vector<uint32_t> children;
    size_t next = 0;
  };

  SqlitePages() = default;
  static int64_t whole(const Value& value);
  int64_t converted_integer(const Value& value) const;
  static size_t bytes_of(uint64_t type);
  const uint8_t* page(uint32_t number);
  bool enter(uint32_t number);
  bool read_record(const uint8_t* cell, const uint8_t* page_end);
  bool assemble(const uint8_t* local, size_t local_bytes, size_t payload_bytes, const uint8_t* after);
  bool damaged() {
    is_damaged_ = true;
    return false;
  }

  int fd_ = -1;
  size_t page_bytes_ = 0, usable_bytes_ = 0;
  uint32_t page_count_ = 0, pages_seen_ = 0;
  std::vector<Column> columns_;
  std::vector<Value> values_;
  std::vector<int> wanted_;        // by place in the table: which of columns_, −1: none
  uint8_t rowid_[8] = {};          // of this row, as a record would have it
  std::vector<Interior> path_;     // from the root to the leaf
  const uint8_t* leaf_ = nullptr;  // in window_
  size_t cell_ = 0, cells_ = 0, cell_array_ = 0;
  std::vector<uint8_t> window_;  // pages from window_first_ on
  uint32_t window_first_ = 0, window_pages_ = 0, ahead_ = 1;
  std::vector<uint8_t> payload_, overflow_page_;  // of a row that is longer than its page
  mutable std::vector<std::string> said_;         // numbers as text, by column
  bool is_damaged_ = false;
};

}  // namespace stageline
