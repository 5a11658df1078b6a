// JSON in and out, and rows of answers, as the tools need them.
#pragma once

#include "analyses/analysis.h"
#include "base/json_writer.h"
#include "base/value_tree.h"
#include "sql/session.h"

namespace stageline::mcp {

// Reasons why a run cannot say something: a closed list, the same in answers, on the page and in the skill.
struct Reason {
  std::string name;     // "no_pipeline_cells"
  std::string meaning;  // one sentence
  std::string help;     // what would make it answerable
};
const std::vector<Reason>& reasons();
const Reason& reason(std::string_view name);  // `name` must be in the list

// Returns why an analysis cannot be asked of this run at all; nullptr where it can.
const Reason* reason_against(const Analysis& analysis, const Trace& trace);
// Returns why an answer was refused; nullptr where the asker made a mistake. `analysis` may be nullptr.
const Reason* reason_of(const Error& error, const Trace& trace, const Analysis* analysis);
// Returns why a table of SQL is empty in this run; nullptr where it is not, or where there is no such table.
const Reason* reason_empty(std::string_view table, const Trace& trace);

// A value as JSON with the keys of objects sorted, so that equal values give equal texts. Below a depth of 64 it is
// null.
std::string canonical_json(const Value& value, int depth = 0);

// A text of a trace with control characters and marks of direction replaced, cut in the middle to `max` bytes.
inline constexpr size_t kMaxTextBytes = 300;
std::string clean_text(std::string_view text, size_t max = kMaxTextBytes);

// Twelve hexadecimal digits that identify a text.
std::string digest(std::string_view text);

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

// Rows as objects with the columns' names as keys. The first `max` are kept, and all are counted.
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
