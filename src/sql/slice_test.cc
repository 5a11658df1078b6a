#include "sql/slice_test.h"

#include <algorithm>

#include "base/name_pattern.h"

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

Status add_name_test(SliceTest& test, const Trace& trace, uint8_t op, sqlite3_value* value) {
  const std::string wanted(text_of(value));
  const auto name = [&](size_t id) { return trace.names.text(static_cast<StringId>(id)); };
  const auto each = [&](const auto& fits) { keep_texts(test.names, trace.names.size(), name, fits); };
  if (sqlite3_value_type(value) == SQLITE_NULL) {
    test.nothing = true;
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

}  // namespace

Push push_of(Field field, uint8_t op, bool binary) {
  const bool equal = op == SQLITE_INDEX_CONSTRAINT_EQ;
  switch (field) {
    case Field::kName:
      if (op == SQLITE_INDEX_CONSTRAINT_LIKE || op == SQLITE_INDEX_CONSTRAINT_GLOB ||
          op == SQLITE_INDEX_CONSTRAINT_REGEXP)
        return {true, true};
      return {equal && binary, true};
    case Field::kCategory:
    case Field::kClass:
    case Field::kLane:
    case Field::kLaneKind:
    case Field::kTid: return {equal && binary, true};
    case Field::kId:
    case Field::kNameId:
    case Field::kStream:
    case Field::kDevice:
    case Field::kParent:
    case Field::kLaunch:
    case Field::kCall:
    case Field::kOp:
    case Field::kCorrelation: return {equal, true};
    case Field::kRank:
    case Field::kStep:
    case Field::kStart:
    case Field::kEnd:
    case Field::kDur: return {equal || is_range(op), false};
    default: return {};
  }
}

Status add_test(SliceTest& test, const Trace& trace, Field field, uint8_t op, sqlite3_value* value) {
  switch (field) {
    case Field::kName: return add_name_test(test, trace, op, value);
    case Field::kCategory: {
      const std::string_view wanted = text_of(value);
      if (wanted.empty()) test.nothing = true;  // SQL shows it as NULL, which equals nothing
      keep_texts(
          test.categories, trace.categories.size(),
          [&](size_t i) { return std::string_view(trace.categories[i].text); },
          [&](std::string_view text) { return text == wanted; });
      break;
    }
    case Field::kClass: {
      std::array<bool, 8> classes = {};
      for (size_t c = 1; c <= static_cast<size_t>(KernelClass::kOther); ++c)
        classes[c] =
            kernel_class_name(static_cast<KernelClass>(c)) == text_of(value) && (!test.classes || (*test.classes)[c]);
      test.classes = classes;
      break;
    }
    case Field::kLane: keep(test.lane, value, test.nothing); break;
    case Field::kLaneKind: keep(test.lane_kind, value, test.nothing); break;
    case Field::kTid: keep(test.tid, value, test.nothing); break;
    case Field::kId: keep(test.id, value, test.nothing); break;
    case Field::kNameId: keep(test.name_id, value, test.nothing); break;
    case Field::kStream: keep(test.stream, value, test.nothing); break;
    case Field::kDevice: keep(test.device, value, test.nothing); break;
    case Field::kParent: keep(test.parent, value, test.nothing); break;
    case Field::kLaunch:
    case Field::kCall: keep(test.launch, value, test.nothing); break;
    case Field::kOp: keep(test.op, value, test.nothing); break;
    case Field::kCorrelation: keep(test.correlation, value, test.nothing); break;
    case Field::kRank: narrow(op, value, test.rank_low, test.rank_high); break;
    case Field::kStep: narrow(op, value, test.step_low, test.step_high); break;
    case Field::kStart: narrow(op, value, test.low_ns, test.high_ns); break;
    case Field::kEnd: narrow(op, value, test.end_low_ns, test.end_high_ns); break;
    case Field::kDur: narrow(op, value, test.dur_low_ns, test.dur_high_ns); break;
    default: break;
  }
  return {};
}

}  // namespace stageline::sql
