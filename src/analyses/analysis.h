// Analysis: one question put to a Trace, answered in Tables. One descriptor per question, listed in
// analyses.def. Analyses are pure: same input, same tables, whatever the number of threads.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/table.h"
#include "model/trace.h"

namespace stageline {

struct AnalysisTable {
  const char* name;     // "ranks"
  const char* summary;  // one line
};

struct Analysis {
  const char* name;  // "pipeline-summary"
  const char* summary;
  std::vector<AnalysisTable> tables;  // in the order run() returns them
  // Errors: kBadInput when the trace holds nothing to analyse.
  Result<std::vector<Table>> (*run)(const Trace& trace);
};

const std::vector<const Analysis*>& analyses();
const Analysis* find_analysis(std::string_view name);  // nullptr when there is none; `_` serves for `-`

}  // namespace stageline
