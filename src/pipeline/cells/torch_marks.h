// Finds marks by rules: the slices of a profiler trace whose names say that they are pipeline work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/cells/cell_mark.h"
#include "pipeline/cells/cell_rules.h"
#include "pipeline/cells/layout_options.h"

namespace stageline {

// A stretch of one part that is one step according to a rule.
struct StepMark {
  int64_t start_ns = 0, end_ns = 0;
  int32_t number = kUnknown;  // kUnknown where the name does not contain it
};

struct FoundMarks {
  std::vector<CellMark> marks;               // ordered by part, then lane and start
  std::vector<std::vector<StepMark>> steps;  // for each part, the outermost ones in order of start
  std::string set;                           // name of the rule set; "" when nothing was found
  std::string example;                       // a name that matched
  int64_t names = 0, slices = 0;             // distinct names and slices that matched
  int64_t nested = 0;                        // slices that lie inside other work of their thread
  int64_t captured = 0;                      // marks of the capture of a graph, when nothing ran
  bool by_frames = false;                    // found in Python frames, not in annotations
  bool interleaved = false;  // ranks have chunks that names do not distinguish, so micro-batch numbers would be guesses
};

// Uses the first rule set that finds forward or backward work. Where what was found is not enough for a pipeline,
// `diagnostics` says so ("cells.no_pipeline"). Work inside other work of its thread is taken as part of it
// ("cells.nested"). O(slices + names · rules).
FoundMarks find_marks(const Trace& trace, const CellRules& rules, const RankLayoutOptions& layout,
                      Diagnostics& diagnostics);

// Returns the marks of the sets that are used together with any other (optimizer steps).
std::vector<CellMark> find_always_marks(const Trace& trace, const CellRules& rules);

}  // namespace stageline
