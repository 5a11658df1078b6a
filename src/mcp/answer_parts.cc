#include "mcp/answer_parts.h"

#include "mcp/words.h"

namespace stageline::mcp {

void append_cell(JsonWriter& json, const sql::SqlValue& value) {
  if (const auto* text = std::get_if<std::string_view>(&value))
    json.value(clean_text(*text));
  else if (const auto* whole = std::get_if<int64_t>(&value))
    json.value(*whole);
  else if (const auto* real = std::get_if<double>(&value))
    json.value(*real);
  else
    json.null();
}

void CappedRows::begin(const std::vector<sql::ResultColumn>& all) {
  columns.begin_array();
  for (const sql::ResultColumn& c : all)
    columns.begin_object().field("name", clean_text(c.name)).field("unit", c.unit).end_object();
  columns.end_array();
  rows.begin_array();
}

bool CappedRows::row(const std::vector<sql::SqlValue>& values) {
  JsonWriter one;
  one.begin_array();
  for (const sql::SqlValue& value : values) {
    append_cell(one, value);
    any_value |= !std::holds_alternative<std::monostate>(value);
  }
  one.end_array();
  full = static_cast<int64_t>(rows.text().size() + one.text().size()) > max_chars;
  if (full) return false;
  rows.raw(one.text());
  ++count;
  return true;
}

void ObjectRows::begin(const std::vector<sql::ResultColumn>& all) {
  for (const sql::ResultColumn& c : all) names.push_back(c.name);
}

bool ObjectRows::row(const std::vector<sql::SqlValue>& values) {
  ++count;
  if (count > max || static_cast<int64_t>(rows.text().size()) > max_chars) return true;
  rows.begin_object();
  for (size_t c = 0; c < values.size(); ++c) {
    if (std::holds_alternative<std::monostate>(values[c])) continue;
    rows.key(names[c]);
    append_cell(rows, values[c]);
  }
  rows.end_object();
  return true;
}

}  // namespace stageline::mcp
