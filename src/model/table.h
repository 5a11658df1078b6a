// Table: named, typed columns with units. Declared once by an analysis; printed as text, CSV, JSON,
// written to SQLite and shown in the report from the same declaration.
//
// Machine formats (CSV, JSON, SQLite) carry raw values: durations as integer nanoseconds, shares
// as fractions of 1. People see them scaled: milliseconds, percent. Column names end in the unit
// of the raw value ("span_ns", "span_bubble_share").
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/cells.h"

namespace stageline {

enum class ColumnType : uint8_t {
  kInteger,  // counts and ids
  kReal,     // plain numbers
  kText,
  kDuration,  // int64 nanoseconds
  kTime,      // int64 nanoseconds since the trace's own zero or the Unix epoch
  kShare,     // fraction of 1, shown as percent
  kRatio,     // shown as "1.63×"
};

struct ColumnSpec {
  std::string name;   // machine name, unit last
  std::string title;  // for people, without unit: "span bubble"
  ColumnType type;
  std::string help;  // one sentence: definition and source
};

inline constexpr int64_t kNullInteger = INT64_MIN;  // an unknown integer; NaN is the unknown real

// What a table shows for a step, stage or micro-batch that may be kUnknown (cells.h).
constexpr int64_t known_integer(int32_t value) { return value == kUnknown ? kNullInteger : value; }

// Real nanoseconds as a table's kDuration: rounded, held within ±4e18; null when not finite.
int64_t whole_ns(double ns);

class Table {
 public:
  using Column = std::variant<std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;

  Table() = default;
  Table(std::string name, std::string title, std::vector<ColumnSpec> columns);

  const std::string& name() const { return name_; }
  const std::string& title() const { return title_; }
  const std::vector<ColumnSpec>& columns() const { return specs_; }
  size_t row_count() const { return row_count_; }

  // A table with a row per event of a large run takes hundreds of bytes a row, and an output needs some thousands of
  // rows at once. later() is such a table: it has the columns of `head` and `row_count` rows, and makes rows when they
  // are asked for. `make` appends the rows [first, first + count) to `out`; several threads may call it at once; what
  // it reads it shares, or its maker said that it outlives the table (AnalysisInput::rows_later). Who takes values of
  // such a table one by one makes it whole first, so nobody has to know; outputs go through it by for_each_block().
  using MakeRows = std::function<void(size_t first, size_t count, Table& out)>;
  static Table later(Table head, size_t row_count, MakeRows make);
  bool is_later() const { return later_ != nullptr; }
  // These rows of a later() table, as a table of their own.
  Table rows(size_t first, size_t count) const;

  // Appends one row: as many values as columns, integers to integer-typed columns and so on
  // (asserted). Integers for kInteger, kDuration, kTime; doubles for kReal, kShare, kRatio.
  using Value = std::variant<int64_t, double, std::string>;
  void add_row(std::vector<Value> values);

  int64_t integer(size_t row, size_t c) const { return std::get<0>(column(c))[row]; }
  double real(size_t row, size_t c) const { return std::get<1>(column(c))[row]; }
  const std::string& text(size_t row, size_t c) const { return std::get<2>(column(c))[row]; }
  bool is_null(size_t row, size_t column) const;
  // All values of a column as they stand, row_count() of them; for outputs that take columns and not rows.
  const Column& column(size_t column) const { return later_ ? whole().data_[column] : data_[column]; }
  // Index of a column by name, or -1.
  int column_index(std::string_view name) const;

  // The value for machines: "1500000", "0.364", "" when null.
  std::string raw_text(size_t row, size_t column) const;
  // The value for people, without unit: "1.500", "36.4", "–" when null.
  std::string shown_text(size_t row, size_t column) const;

 private:
  std::string name_, title_;
  std::vector<ColumnSpec> specs_;
  struct Later;
  const Table& whole() const;  // of a later() table all rows, made once

  std::vector<Column> data_;  // of a later() table empty columns of their types
  size_t row_count_ = 0;
  std::shared_ptr<Later> later_;
};

inline constexpr size_t kBlockRows = 4096;  // some hundreds of KiB

// Calls visit(const Table& block, size_t begin, size_t end) for the rows [begin, end) of `table` in order: once with
// the table itself, or with a block after the other of a later() table.
template <class Visit>
void for_each_block(const Table& table, size_t begin, size_t end, Visit&& visit) {
  if (!table.is_later()) return visit(table, begin, end);
  for (size_t first = begin; first < end; first += kBlockRows) {
    const size_t count = end - first < kBlockRows ? end - first : kBlockRows;
    visit(table.rows(first, count), size_t{0}, count);
  }
}

// The type as machine formats name it ("duration"), and the unit of its raw values ("ns" or "").
std::string_view column_type_name(ColumnType type);
std::string_view raw_unit(ColumnType type);

// The unit people see for a column type: "ms", "%", "×", "".
std::string_view shown_unit(ColumnType type);

}  // namespace stageline
