// Table: named, typed columns with units. Declared once (TableSpec); printed as text, CSV, JSON,
// written to SQLite and shown in the report from the same declaration.
//
// Machine formats (CSV, JSON, SQLite) carry raw values: durations as integer nanoseconds, shares
// as fractions of 1. People see them scaled: milliseconds, percent. Column names end in the unit
// of the raw value ("span_ns", "span_bubble_share").
#pragma once

#include "base/words.h"
#include "model/cells.h"

namespace stageline {

// The declaration of a table: its name, title and columns. words.json of the room that fills it has it:
//
//     "tables": {"links": {"slow-links": {          // the analysis or command, the table
//       "title": "Links that are slow, and what they cost",
//       "summary": "what is slow in most steps and worth 1 % of a step",
//       "columns": [["saving_share", "saving", "share", "Of the mean step, …"], …]}}}
//     Table table(declared_table("links/slow-links"));
//
// A column is [name, title, type, help]. A text instead of a column stands for all columns of that name in
// "column_sets", which any words.json may have. A table that looks different under an option or as another tool's has a
// further entry with a variant: "slow-links/hta". "grows": the run may add columns, depending on what was recorded.
enum class ColumnType : uint8_t {
  kInteger,  // counts and ids
  kReal,     // plain numbers
  kText,
  kDuration,  // int64 nanoseconds
  kTime,      // int64 nanoseconds since the trace's own zero or the Unix epoch
  kShare,     // fraction of 1, shown as percent
  kRatio,     // shown as "1.63×"
};

// Returns the type as words.json and machine formats name it: "duration".
std::string_view column_type_name(ColumnType type);

struct ColumnSpec {
  std::string name;   // machine name, unit last
  std::string title;  // for people, without unit: "span bubble"
  ColumnType type;
  std::string help;  // one sentence: how the value is defined, and its source
};

struct TableSpec {
  std::string name;     // "slow-links"
  std::string title;    // for people
  std::string summary;  // one line, of tables of analyses and of SQL
  std::vector<ColumnSpec> columns;
  bool grows = false;
  std::vector<ColumnSpec> options;  // the arguments of a function of SQL, declared as columns are
};

// Returns the table with this id, "links/slow-links", and variant. Asserts that there is one.
const TableSpec& declared_table(std::string_view id, std::string_view variant = {});

// Returns the tables of an analysis, without variants, in the order of words.json.
const std::vector<const TableSpec*>& declared_tables(std::string_view owner);

// Returns what is wrong with the declarations: a type or a set of columns that does not exist, a table that is declared
// twice. For a test.
const std::vector<std::string>& flaws_of_tables();

inline constexpr int64_t kNullInteger = INT64_MIN;  // stands for an unknown integer, as NaN does for an unknown real

// Returns what a table shows for a step, stage or micro-batch: null where it is kUnknown (cells.h).
constexpr int64_t known_integer(int32_t value) { return value == kUnknown ? kNullInteger : value; }

// Rounds real nanoseconds to a value of a kDuration column and keeps it within ±4e18; null when not finite.
int64_t whole_ns(double ns);

class Table {
 public:
  using Column = std::variant<std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;

  Table() = default;
  Table(TableSpec spec);
  Table(std::string name, std::string title, std::vector<ColumnSpec> columns);

  const std::string& name() const { return name_; }
  const std::string& title() const { return title_; }
  const std::vector<ColumnSpec>& columns() const { return specs_; }
  size_t row_count() const { return row_count_; }

  // A table with a row for every event of a large run would take hundreds of bytes per row, while an output needs only
  // some thousands of rows at once. So later() makes a table with the columns of `head` and `row_count` rows, but
  // computes the rows on request. `make` appends the rows [first, first + count) to `out`, and may be called by several
  // threads at once. It must own what it reads, unless its caller has promised that the data outlives the table
  // (AnalysisInput::rows_later). Reading a single value of such a table first computes all of it, so readers need no
  // special case. Outputs go through it block by block with for_each_block().
  using MakeRows = std::function<void(size_t first, size_t count, Table& out)>;
  static Table later(Table head, size_t row_count, MakeRows make);
  bool is_later() const { return later_ != nullptr; }
  // Returns these rows of a later() table as a table of their own.
  Table rows(size_t first, size_t count) const;

  // Appends one row, which must have as many values as there are columns (asserted): integers for kInteger, kDuration
  // and kTime, doubles for kReal, kShare and kRatio, text for kText. A Text is a sentence in both languages: the column
  // holds its English, and chinese() knows the rest.
  using Value = std::variant<int64_t, double, std::string, Text>;
  void add_row(std::vector<Value> values);

  int64_t integer(size_t row, size_t c) const { return std::get<0>(column(c))[row]; }
  double real(size_t row, size_t c) const { return std::get<1>(column(c))[row]; }
  const std::string& text(size_t row, size_t c) const { return std::get<2>(column(c))[row]; }
  // Returns the Chinese of a cell whose row was added with a Text; "" for other texts.
  std::string_view chinese(const std::string& english) const;
  bool is_null(size_t row, size_t column) const;
  // Returns all row_count() values of a column; for outputs that take columns rather than rows.
  const Column& column(size_t column) const { return later_ ? whole().data_[column] : data_[column]; }
  // Returns the index of the column with this name, or −1.
  int column_index(std::string_view name) const;

  // Returns the value for machines: "1500000", "0.364", "" when null.
  std::string raw_text(size_t row, size_t column) const;
  // Returns the value for people, without its unit: "1.500", "36.4", "–" when null.
  std::string shown_text(size_t row, size_t column) const;

 private:
  std::string name_, title_;
  std::vector<ColumnSpec> specs_;
  struct Later;
  const Table& whole() const;  // all rows of a later() table, made once

  std::map<std::string, std::string, std::less<>> chinese_;  // of the sentences in text columns
  std::vector<Column> data_;  // for a later() table, columns of the right types without rows
  size_t row_count_ = 0;
  std::shared_ptr<Later> later_;
};

inline constexpr size_t kBlockRows = 4096;  // a block of this size takes some hundreds of KiB

// Calls visit(const Table& block, size_t begin, size_t end) until all rows [begin, end) of `table` have been seen in
// order. It is called once with the table itself, or with one block of a later() table after another.
template <class Visit> void for_each_block(const Table& table, size_t begin, size_t end, Visit&& visit) {
  if (!table.is_later()) return visit(table, begin, end);
  for (size_t first = begin; first < end; first += kBlockRows) {
    const size_t count = end - first < kBlockRows ? end - first : kBlockRows;
    visit(table.rows(first, count), size_t{0}, count);
  }
}

// Returns the unit of the raw values of this type: "ns" or "".
std::string_view raw_unit(ColumnType type);

// Returns the unit in which people see values of this type: "ms", "%", "×", "".
std::string_view shown_unit(ColumnType type);

}  // namespace stageline
