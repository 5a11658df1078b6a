// Parts that answers are made of: rows until an answer is full, whole numbers or null, columns of a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "sql/session.h"

namespace stageline::mcp {

// Rows as JSON arrays, until the answer is full.
struct CappedRows : sql::RowSink {
  explicit CappedRows(int64_t max) : max_chars(max) {}
  void begin(const std::vector<sql::ResultColumn>& all) override;
  bool row(const std::vector<sql::SqlValue>& values) override;

  int64_t max_chars;
  JsonWriter columns, rows;
  int64_t count = 0;
  bool full = false;
  bool any_value = false;  // some value other than NULL came
};

// Rows as objects with the columns' names as keys. The first `most` are kept, and all are counted.
struct ObjectRows : sql::RowSink {
  ObjectRows(int64_t max_rows, int64_t max_bytes) : max(max_rows), max_chars(max_bytes) { rows.begin_array(); }
  void begin(const std::vector<sql::ResultColumn>& all) override;
  bool row(const std::vector<sql::SqlValue>& values) override;

  int64_t max, max_chars, count = 0;
  std::vector<std::string> names;
  JsonWriter rows;  // an array that is still open
};

void append_cell(JsonWriter& json, const sql::SqlValue& value);

}  // namespace stageline::mcp
