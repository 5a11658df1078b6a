// Reads the rows of one table of an SQLite file from its pages, in order of rowid. SQLite itself takes some 300 ns for
// a row of twenty columns; a profile has millions of rows and is read once, from end to end.
//
//   file = pages of one size                      interior page  [child, key] [child, key] … right child
//   table = a tree of pages, rows in the leaves   leaf page      [payload length, rowid, payload] …
//   payload = header (length, one type per column) and the values one after the other; what is too long for its page
//   goes on in a chain of overflow pages.
//
// The file format is documented by SQLite (https://www.sqlite.org/fileformat2.html). This reader is only for files
// without a writer (SqliteDb::open_read) and for plain tables; SQLite itself reads all others.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

class SqlitePages {
 public:
  // A column that is asked for, as the table's declaration describes it.
  struct Column {
    int place = -1;         // in the table's own order; −1: the column does not exist and reads as NULL
    bool is_rowid = false;  // INTEGER PRIMARY KEY: the value is the rowid, which is stored outside the record
    bool is_real = false;   // REAL: whole numbers are stored as integers but are still real values
  };

  // Opens the table whose first page is `root`. Returns null when this reader cannot read the file: texts in UTF-16, a
  // table without rowid, or an unknown header.
  static std::unique_ptr<SqlitePages> open(const std::string& path, uint32_t root, std::vector<Column> columns);
  ~SqlitePages();
  SqlitePages(const SqlitePages&) = delete;
  SqlitePages& operator=(const SqlitePages&) = delete;

  // Returns false after the last row, and when the pages make no sense; is_damaged() then returns true.
  bool next();
  bool is_damaged() const { return is_damaged_; }

  // The values as sqlite3_column_type, _int64, _double and _text return them. Texts are valid until the next call of
  // next().
  int type(int column) const;
  bool is_null(int column) const {
    const uint64_t type = values_[column].type;
    return is_whole(type) ? type == 0 : this->type(column) == kNull;
  }
  int64_t integer(int column) const {
    const Value& value = values_[column];
    return is_whole(value.type) ? value.number : converted_integer(value);
  }
  double real(int column) const;
  std::string_view text(int column) const;
  int columns() const { return static_cast<int>(columns_.size()); }

 private:
  // A value of the row as its record has it; `type`: the record's serial type. `number`: of whole numbers; 0 of NULL.
  struct Value {
    uint64_t type = 0;
    const uint8_t* bytes = nullptr;
    int64_t number = 0;
  };
  // Serial type 0 is NULL; 1 to 6 are integers of 1, 2, 3, 4, 6 and 8 bytes. Type 7 is a real, and 8 and 9 are the
  // integers 0 and 1.
  static constexpr uint64_t kLastInteger = 6, kReal = 7, kZero = 8, kOne = 9;
  static constexpr bool is_whole(uint64_t type) { return type <= kOne && type != kReal; }
  static constexpr int kNull = 5;  // SQLITE_NULL
  struct Interior {
    std::vector<uint32_t> children;
    size_t next = 0;
  };

  SqlitePages() = default;
  int64_t converted_integer(const Value& value) const;
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
  std::vector<size_t> rowids_;     // of columns_, those that are the rowid
  std::vector<Interior> path_;     // from the root to the leaf
  const uint8_t* leaf_ = nullptr;  // points into window_
  size_t cell_ = 0, cells_ = 0, cell_array_ = 0;
  std::vector<uint8_t> window_;  // pages from window_first_ on
  uint32_t window_first_ = 0, window_pages_ = 0, ahead_ = 1;
  std::vector<uint8_t> payload_, overflow_page_;  // for a row that is longer than its page
  mutable std::vector<std::string> printed_;      // numbers as text, one for each column
  bool is_damaged_ = false;
};

}  // namespace stageline
