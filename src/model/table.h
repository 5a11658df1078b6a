// Table: named, typed columns with units. Declared once by an analysis; printed as text, CSV, JSON,
// written to SQLite and shown in the report from the same declaration.
//
// Machine formats (CSV, JSON, SQLite) carry raw values: durations as integer nanoseconds, shares
// as fractions of 1. People see them scaled: milliseconds, percent. Column names end in the unit
// of the raw value ("span_ns", "span_bubble_share").
#pragma once

#include <cstdint>
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

  // Appends one row: as many values as columns, integers to integer-typed columns and so on
  // (asserted). Integers for kInteger, kDuration, kTime; doubles for kReal, kShare, kRatio.
  using Value = std::variant<int64_t, double, std::string>;
  void add_row(std::vector<Value> values);

  int64_t integer(size_t row, size_t column) const { return std::get<0>(data_[column])[row]; }
  double real(size_t row, size_t column) const { return std::get<1>(data_[column])[row]; }
  const std::string& text(size_t row, size_t column) const { return std::get<2>(data_[column])[row]; }
  bool is_null(size_t row, size_t column) const;
  // All values of a column as they stand, row_count() of them; for outputs that take columns and not rows.
  const Column& column(size_t column) const { return data_[column]; }
  // Index of a column by name, or -1.
  int column_index(std::string_view name) const;

  // The value for machines: "1500000", "0.364", "" when null.
  std::string raw_text(size_t row, size_t column) const;
  // The value for people, without unit: "1.500", "36.4", "–" when null.
  std::string shown_text(size_t row, size_t column) const;

 private:
  std::string name_, title_;
  std::vector<ColumnSpec> specs_;
  std::vector<Column> data_;
  size_t row_count_ = 0;
};

// The type as machine formats name it ("duration"), and the unit of its raw values ("ns" or "").
std::string_view column_type_name(ColumnType type);
std::string_view raw_unit(ColumnType type);

// The unit people see for a column type: "ms", "%", "×", "".
std::string_view shown_unit(ColumnType type);

}  // namespace stageline
