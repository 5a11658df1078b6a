// Selects the slices of a rank that meet a condition, for questions that list slices instead of adding them up.
//
//   name contains "gemm"  and  step 3 … 5  and  not under "aten::backward"
//        └──── leaves, each asked of the columns once ────┘
//
// A condition on text is evaluated once for each different text of the trace, never for each row.
#pragma once

#include "model/trace.h"

namespace stageline {

struct SliceCondition {
  enum class Kind : uint8_t {
    kAll,       // every slice
    kAnd,       // all of `parts`
    kOr,        // at least one of `parts`
    kNot,       // not parts[0]
    kNumbers,   // the number in `column` is one of `numbers`
    kBetween,   // the number in `column` is from `low` to `high`, both included
    kTexts,     // the text in `column` is one of `texts`
    kGlob,      // the text in `column` fits one of `texts`, in which * is any text and ? any letter
    kContains,  // the text in `column` contains one of `texts`
    kMatches,   // one of `texts`, as a regular expression (base/name_pattern.h), matches within the text in `column`
    // Ended before the first slice of the same step began whose name is one of `texts`; for device work, its launch
    // counts.
    kBefore,
    kAfter,  // began after the last such slice of the same step ended. Slices outside of all steps count as one step
    kUnder,  // inside a slice whose name is one of `texts`: what it called, and the device work launched there
  };
  Kind kind = Kind::kAll;
  // Columns of numbers: rank, step, stream, start_ns, end_ns, dur_ns. Columns of texts: name, category, class, lane.
  std::string column;
  std::vector<int64_t> numbers;
  int64_t low = INT64_MIN, high = INT64_MAX;
  std::vector<std::string> texts;
  // For kBefore, kAfter and kUnder: uses only one slice of each name in each step. That is the one with this number in
  // order of start, counted from 0; −1 is the last.
  std::optional<int64_t> occurrence;
  std::vector<SliceCondition> parts;
};

// Errors: kUsage for a column that does not exist (with the nearest name), a column with the other kind of value, or a
// text that is not a regular expression.
Status check_condition(const SliceCondition& condition);

// Returns the slices of one part that meet the condition, ascending, of those that --ranks, --steps and --range leave.
// `condition` must have been checked. Times are those of Trace::common_ns, counted as in the columns. O(slices of the
// part) for each leaf.
std::vector<uint32_t> select_slices(const Trace& trace, size_t part, const SliceCondition& condition);

}  // namespace stageline
