#include "base/name_pattern.h"
#include "sql/slice_scan.h"

namespace stageline::sql {
namespace {

using Field = SliceColumn;
constexpr size_t kMaxPatternBytes = 1000;  // the same limit as Session sets for SQLite's own patterns

void keep(std::optional<int64_t>& wanted, sqlite3_value* value, bool& nothing) {
  const std::optional<int64_t> number = integer_of(value);
  if (!number || (wanted && *wanted != *number)) nothing = true;
  wanted = number;
}

void keep(std::optional<std::string>& wanted, sqlite3_value* value, bool& nothing) {
  if (sqlite3_value_type(value) == SQLITE_NULL || (wanted && *wanted != text_of(value))) nothing = true;
  wanted = std::string(text_of(value));
}

Status add_name(SliceFilter& filter, const Trace& trace, uint8_t op, sqlite3_value* value) {
  const std::string wanted(text_of(value));
  const auto name = [&](size_t id) { return trace.names.text(static_cast<StringId>(id)); };
  const auto each = [&](const auto& fits) { keep_texts(filter.names, trace.names.size(), name, fits); };
  if (sqlite3_value_type(value) == SQLITE_NULL) {
    filter.nothing = true;
    return {};
  }
  if (op != SQLITE_INDEX_CONSTRAINT_EQ && wanted.size() > kMaxPatternBytes)
    return make_error(ErrorCode::kLimit, "a pattern is longer than " + std::to_string(kMaxPatternBytes) + " bytes");
  switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ: each([&](std::string_view text) { return text == wanted; }); break;
    case SQLITE_INDEX_CONSTRAINT_GLOB:
      each([&](std::string_view text) { return sqlite3_strglob(wanted.c_str(), std::string(text).c_str()) == 0; });
      break;
    case SQLITE_INDEX_CONSTRAINT_LIKE:
      each([&](std::string_view text) { return sqlite3_strlike(wanted.c_str(), std::string(text).c_str(), 0) == 0; });
      break;
    default: {
      TRY(pattern, NamePattern::expression(wanted));
      each([&](std::string_view text) { return pattern->matches(text); });
    }
  }
  return {};
}

Status add_category(SliceFilter& filter, const Trace& trace, uint8_t, sqlite3_value* value) {
  const std::string_view wanted = text_of(value);
  if (wanted.empty()) filter.nothing = true;  // SQL shows it as NULL, which equals nothing
  keep_texts(
      filter.categories, trace.categories.size(), [&](size_t i) { return std::string_view(trace.categories[i].text); },
      [&](std::string_view text) { return text == wanted; });
  return {};
}

Status add_class(SliceFilter& filter, const Trace&, uint8_t, sqlite3_value* value) {
  ClassSet classes = {};
  for (size_t c = 1; c <= static_cast<size_t>(KernelClass::kOther); ++c)
    classes[c] =
        kernel_class_name(static_cast<KernelClass>(c)) == text_of(value) && (!filter.classes || (*filter.classes)[c]);
  filter.classes = classes;
  return {};
}

// The part of the filter that a condition on a field sets: a value that it equals, the ends of a range, or what a
// function makes.
using Integer = std::optional<int64_t> SliceFilter::*;
using Words = std::optional<std::string> SliceFilter::*;
struct Range {
  int64_t SliceFilter::*low, SliceFilter::*high;
};
using Adder = Status (*)(SliceFilter&, const Trace&, uint8_t op, sqlite3_value*);
struct Condition {
  Field field;
  std::variant<Integer, Words, Range, Adder> target;
};
constexpr Condition kConditions[] = {
#define CONDITION(field, ...) {Field::field, __VA_ARGS__},
#include "sql/slice_conditions.def"
};

// Null where no condition on the field is pushed down.
const Condition* condition_on(Field field) {
  const auto* const found = std::find_if(std::begin(kConditions), std::end(kConditions),
                                         [&](const Condition& c) { return c.field == field; });
  return found == std::end(kConditions) ? nullptr : found;
}

}  // namespace

Push push_of(Field field, uint8_t op, bool binary) {
  const Condition* const condition = condition_on(field);
  if (!condition) return {};
  const bool equal = op == SQLITE_INDEX_CONSTRAINT_EQ;
  if (std::holds_alternative<Range>(condition->target)) return {equal || is_range(op), false};
  const bool pattern =
      op == SQLITE_INDEX_CONSTRAINT_LIKE || op == SQLITE_INDEX_CONSTRAINT_GLOB || op == SQLITE_INDEX_CONSTRAINT_REGEXP;
  if (field == Field::kName && pattern) return {true, true};
  return {equal && (binary || std::holds_alternative<Integer>(condition->target)), true};
}

Status add_condition(SliceFilter& filter, const Trace& trace, Field field, uint8_t op, sqlite3_value* value) {
  const Condition* const condition = condition_on(field);
  if (!condition) return {};
  if (const auto* add = std::get_if<Adder>(&condition->target)) return (*add)(filter, trace, op, value);
  if (const auto* range = std::get_if<Range>(&condition->target))
    narrow(op, value, filter.*range->low, filter.*range->high);
  else if (const auto* integer = std::get_if<Integer>(&condition->target))
    keep(filter.**integer, value, filter.nothing);
  else keep(filter.*std::get<Words>(condition->target), value, filter.nothing);
  return {};
}

}  // namespace stageline::sql
