// Which slices of a rank a condition names: for those who list slices instead of adding them up.
//
//   name contains "gemm"  and  step 3 … 5  and  not under "aten::backward"
//        └──── leaves, each asked of the columns once ────┘
//
// A condition on text is asked once for each different text of the trace, never for each row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/trace.h"

namespace stageline {

struct SliceCondition {
  enum class Kind : uint8_t {
    kAll,       // every slice
    kAnd,       // both of `parts`; with more than two all of them
    kOr,        // any of `parts`
    kNot,       // not parts[0]
    kNumbers,   // `column` is one of `numbers`
    kBetween,   // `column` is from `low` to `high`, both included
    kTexts,     // `column` is one of `texts`
    kGlob,      // `column` fits one of `texts`, where * is any text and ? any letter
    kContains,  // `column` holds one of `texts`
    kMatches,   // one of `texts`, as a regular expression (base/name_pattern.h), stands in `column`
    kBefore,  // of the same step: had ended when the first slice named one of `texts` began. Of device work its launch
              // counts
    kAfter,   // of the same step: began once the last such slice had ended. Slices outside of all steps are one step
    kUnder,  // inside a slice whose name is one of `texts`: what it called, and the device work that was launched there
  };
  Kind kind = Kind::kAll;
  // Numbers: rank, step, stream, start_ns, end_ns, dur_ns. Texts: name, category, class, lane.
  std::string column;
  std::vector<int64_t> numbers;
  int64_t low = INT64_MIN, high = INT64_MAX;
  std::vector<std::string> texts;
  // Of kBefore, kAfter and kUnder: only the slice that is this one of its name in its step, by start, from 0; −1: the
  // last.
  std::optional<int64_t> occurrence;
  std::vector<SliceCondition> parts;
};

// Errors: kUsage for a column that is not there, with the nearest, or that holds the other kind of value; for a regular
// expression that is none.
Status check_condition(const SliceCondition& condition);

// The slices of one part that fit, ascending; `condition` is checked. Of those that --ranks, --steps and --range leave.
// Times are those of Trace::common_ns, counted as the columns are. O(slices of the part) for each leaf.
std::vector<uint32_t> select_slices(const Trace& trace, size_t part, const SliceCondition& condition);

}  // namespace stageline
