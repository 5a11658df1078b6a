// Marks by rules: which slices of a profiler trace are pipeline work by their names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/cells/cell_mark.h"
#include "pipeline/cells/cell_rules.h"
#include "pipeline/cells/layout_options.h"

namespace stageline {

// A stretch of one part that is one step by a rule.
struct StepMark {
  int64_t start_ns = 0, end_ns = 0;
  int32_t number = kUnknown;  // where the name says it
};

struct FoundMarks {
  std::vector<CellMark> marks;               // by part, then lane and start
  std::vector<std::vector<StepMark>> steps;  // by part, by start, outermost ones
  std::string set;                           // name of the rule set; "": nothing was found
  std::string example;                       // a name that matched
  int64_t names = 0, slices = 0;             // distinct names and slices that matched
  int64_t nested = 0;                        // slices inside work of their thread
  bool by_frames = false;                    // Python frames, not annotations
  bool interleaved = false;                  // chunks that names do not tell apart: numbers would be guesses
};

// The first set with forward or backward work counts. What is not enough for a pipeline is said in `diagnostics`
// ("cells.no_pipeline"). Work inside other work of its thread is one with it ("cells.nested"). O(slices + names ·
// rules).
FoundMarks find_marks(const Trace& trace, const CellRules& rules, const RankLayoutOptions& layout,
                      Diagnostics& diagnostics);

// Marks of the rule sets that go with every other one (optimizer steps), whatever else is named.
std::vector<CellMark> find_always_marks(const Trace& trace, const CellRules& rules);

}  // namespace stageline
