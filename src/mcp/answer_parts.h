// What answers are made of: rows until they are full, whole numbers or null, the columns of a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "model/table.h"
#include "sql/session.h"

namespace stageline::mcp {

// Rows as JSON arrays, until an answer is full.
struct CappedRows : sql::RowSink {
  explicit CappedRows(int64_t most) : most_chars(most) {}
  void begin(const std::vector<sql::ResultColumn>& all) override;
  bool row(const std::vector<sql::SqlValue>& values) override;

  int64_t most_chars;
  JsonWriter columns, rows;
  int64_t count = 0;
  bool full = false;
  bool any_value = false;  // something but NULL came
};

// Rows as objects by the columns' names, of which `most` are kept and all are counted.
struct ObjectRows : sql::RowSink {
  ObjectRows(int64_t most_rows, int64_t most_bytes) : most(most_rows), most_chars(most_bytes) { rows.begin_array(); }
  void begin(const std::vector<sql::ResultColumn>& all) override;
  bool row(const std::vector<sql::SqlValue>& values) override;

  int64_t most, most_chars, count = 0;
  std::vector<std::string> names;
  JsonWriter rows;  // an open array
};

void append_cell(JsonWriter& json, const sql::SqlValue& value);
// A number of nanoseconds, whole; null where it is not known.
void append_ns(JsonWriter& json, const char* name, double ns);
void append_share(JsonWriter& json, const char* name, double share);

}  // namespace stageline::mcp
